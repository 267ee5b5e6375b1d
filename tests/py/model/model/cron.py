"""When a schedule is due, found by looking at one minute after the other."""

from datetime import UTC, datetime, timedelta

NAMES = {
    "@hourly": "0 * * * *", "@daily": "0 0 * * *", "@weekly": "0 0 * * 0", "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
}  # fmt: skip
MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
DAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]
RANGES = [(0, 59), (0, 23), (1, 31), (1, 12), (0, 7)]
# By name, and as rules.
ZONES = (
    ("Europe/Berlin", "CET-1CEST,M3.5.0,M10.5.0/3"),
    ("America/New_York", "EST5EDT,M3.2.0,M11.1.0"),
    ("Australia/Lord_Howe", "<+1030>-10:30<+11>-11,M10.1.0,M4.1.0"),
    ("Europe/Dublin", "IST-1GMT0,M10.5.0,M3.5.0/1"),
    ("Asia/Kolkata", "IST-5:30"),
)
NEVER_DAYS = 366 * 9  # a 29th of February comes within eight years and a bit
MINUTE, MINUTE_MS = timedelta(minutes=1), 60_000


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
    def __init__(self, text, zone=UTC):
        self.fields = NAMES.get(text.lower(), text).split()
        sets = [values(field, *of) for field, of in zip(self.fields, RANGES, strict=True)]
        self.minutes, self.hours, self.days, self.months, self.weekdays = sets
        if 7 in self.weekdays:
            self.weekdays.add(0)
        self.zone = zone
        self.has_given_times = not any(field.startswith("*") for field in self.fields[:2])

    def clock(self, at):
        """What clocks show then."""
        return at.astimezone(self.zone).replace(tzinfo=None)

    def is_day(self, day):
        fits = day.day in self.days, (day.weekday() + 1) % 7 in self.weekdays
        both_restricted = not self.fields[2].startswith("*") and not self.fields[4].startswith("*")
        return day.month in self.months and (any(fits) if both_restricted else all(fits))

    def fits(self, local):
        return local.minute in self.minutes and local.hour in self.hours and self.is_day(local)

    def is_moment(self, minute):
        """Whether this minute, which is of UTC, is one."""
        clock = self.clock(minute)
        if self.fits(clock) and not (self.has_given_times and clock.fold):
            return True
        skipped = self.clock(minute - MINUTE).replace(fold=0) + MINUTE if self.has_given_times else clock
        while skipped < clock:
            if self.fits(skipped):
                return True
            skipped += MINUTE
        return False

    def after(self, moment_ms):
        """The first moment after this one, or None."""
        minute = begin = datetime.fromtimestamp(moment_ms // MINUTE_MS * 60, UTC)
        end = minute + timedelta(days=NEVER_DAYS)
        while minute < end:
            if minute == begin or minute.minute == 0:
                # What befalls clocks is over within a day, and moves them by an hour at most.
                hour, clock = minute.replace(minute=0), self.clock(minute)
                if not any(self.is_day(clock + timedelta(days=n)) for n in (-1, 0, 1)):
                    minute = hour + timedelta(days=1)
                    continue
                clock = self.clock(hour)
                if not any((clock + n * MINUTE).hour in self.hours for n in (-60, 0, 60, 119)):
                    minute = hour + timedelta(hours=1)
                    continue
            if (at_ms := round(minute.timestamp() * 1000)) > moment_ms and self.is_moment(minute):
                return at_ms
            minute += MINUTE
        return None
