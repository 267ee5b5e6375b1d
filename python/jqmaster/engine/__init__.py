"""The operations as typed calls, the scripts behind them, what waits on Redis (picks, ends of jobs), and the forms
that calls have: MessagePack, keys, time zones, traces."""
