"""The operations as typed calls, the scripts behind them, and what waits on Redis: picks and ends of jobs."""
