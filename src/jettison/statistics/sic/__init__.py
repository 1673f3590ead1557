"""How much source information is in results: the source information content (SIC) of every output (DISSP 4.2).

Comes in: a graph, the length of the source time window, and the `BatchSample` of every batch.
Goes out: a `SicWindow`: the SIC of every output over that window, and what it rests on, by source.
"""

from jettison.statistics.sic.length import check_stw, default_stw_ms
from jettison.statistics.sic.window import SicWindow

__all__ = ["SicWindow", "check_stw", "default_stw_ms"]
