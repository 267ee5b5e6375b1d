"""JQ, the surface for applications: functions as jobs, enqueueing, handles, over Redis or over HTTP."""
