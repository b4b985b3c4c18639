#!/usr/bin/env python3
"""Hook for Claude Code: tells the agent once of new mail at the tfx hub, and is silent otherwise.

Run by the Python that tfx is installed in; when tfx is gone there is nothing to tell.
"""

import sys

try:
    from tfx.hub.hook import main
except ImportError:
    sys.exit(0)

sys.exit(main())
