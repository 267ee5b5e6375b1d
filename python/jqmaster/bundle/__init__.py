"""From scripts/ and jqlua/ to what Redis loads: tokens, modules, links, library.

It needs the standard library alone, since building a wheel imports it.
"""
