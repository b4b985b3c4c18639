"""Every check, in the order in which rows are reported (D-25).

A new check is one function in a family module and one entry of its CHECKS.
"""

from __future__ import annotations

from tfx.doctor.checks import agents, assets, configs, hub, machine, shells

CHECKS = (
    *shells.CHECKS,
    *agents.CHECKS,
    *configs.CHECKS,
    *assets.CHECKS,
    *hub.CHECKS,
    *machine.CHECKS,
)
