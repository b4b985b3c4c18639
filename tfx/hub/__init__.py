"""The hub: one local daemon through which agents write to each other, ask and hand work over."""
