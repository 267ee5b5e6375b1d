"""When a schedule is due, found by looking at one minute after the other."""

from datetime import UTC, datetime, timedelta

NAMES = {
    "@hourly": "0 * * * *", "@daily": "0 0 * * *", "@weekly": "0 0 * * 0", "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
}  # fmt: skip
MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
DAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]
RANGES = [(0, 59), (0, 23), (1, 31), (1, 12), (0, 7)]
NEVER_DAYS = 366 * 9  # a 29th of February comes within eight years and a bit
MINUTE_MS = 60_000


def number(text):
    text = text.lower()
    if text in MONTHS:
        return MONTHS.index(text) + 1
    return DAYS.index(text) if text in DAYS else int(text)


def values(field, least, most):
    found = set()
    for part in field.split(","):
        span, _, step = part.partition("/")
        begin, dash, end = span.partition("-")
        first = least if span == "*" else number(begin)
        last = number(end) if dash else most if span == "*" or step else first
        found |= set(range(first, last + 1, int(step or 1)))
    return found


class Cron:
    def __init__(self, text, utc_offset=0):
        self.fields = NAMES.get(text.lower(), text).split()
        sets = [values(field, *of) for field, of in zip(self.fields, RANGES, strict=True)]
        self.minutes, self.hours, self.days, self.months, self.weekdays = sets
        if 7 in self.weekdays:
            self.weekdays.add(0)
        self.offset_ms = utc_offset * MINUTE_MS

    def is_day(self, day):
        fits = day.day in self.days, (day.weekday() + 1) % 7 in self.weekdays
        both_restricted = not self.fields[2].startswith("*") and not self.fields[4].startswith("*")
        return day.month in self.months and (any(fits) if both_restricted else all(fits))

    def after(self, moment_ms):
        """The first moment after this one, or None."""
        moment = datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=moment_ms + self.offset_ms)
        at = moment.replace(second=0, microsecond=0) + timedelta(minutes=1)
        for _ in range(NEVER_DAYS):
            if self.is_day(at):
                day = at.date()
                while at.date() == day:
                    if at.minute in self.minutes and at.hour in self.hours:
                        return round(at.timestamp() * 1000) - self.offset_ms
                    at += timedelta(minutes=1)
            else:
                at = at.replace(hour=0, minute=0) + timedelta(days=1)
        return None
