"""From scripts/ and jqlua/ to what Redis loads: one chunk a script, and a library of functions.

It needs the standard library alone, since building a wheel imports it.
"""
