// When a schedule comes, in words: "every weekday at 9:00". What has no short words stays the expression.

const MONTHS = 'January February March April May June July August September October November December'.split(' ');
const DAYS = 'Sunday Monday Tuesday Wednesday Thursday Friday Saturday'.split(' ');
const NAMED = {
  '@hourly': '0 * * * *',
  '@daily': '0 0 * * *',
  '@midnight': '0 0 * * *',
  '@weekly': '0 0 * * 0',
  '@monthly': '0 0 1 * *',
  '@yearly': '0 0 1 1 *',
  '@annually': '0 0 1 1 *',
};
const MOST_TIMES = 4;
const MOST_DAYS = 3;

const short = (names) => Object.fromEntries(names.map((name, i) => [name.slice(0, 3).toLowerCase(), i]));
const MONTH_NUMBERS = Object.fromEntries(Object.entries(short(MONTHS)).map(([name, i]) => [name, i + 1]));
const DAY_NUMBERS = short(DAYS);

function number(text, names) {
  const found = names[text.toLowerCase()] ?? (/^\d+$/.test(text) ? Number(text) : NaN);
  if (Number.isNaN(found)) throw new RangeError(text);
  return found;
}

/** The values that a field names in order; `step`: of every n-th from the least on. null: any. */
function field(text, least, most, names = {}) {
  if (text === '*') return null;
  const values = new Set();
  for (const part of text.split(',')) {
    const [range, every = '1'] = part.split('/');
    const step = number(every, {});
    let [from, to] = range === '*' ? [least, most] : range.split('-').map((one) => number(one, names));
    to ??= part.includes('/') ? most : from;
    if (to < from && most === 7) to += 7;
    if (!step || to < from) throw new RangeError(part);
    for (let value = from; value <= to; value += step) values.add(most === 7 ? value % 7 : value);
  }
  const found = [...values].sort((a, b) => a - b);
  const alone = /^\*\/(\d+)$/.exec(text);
  const span = most === 7 ? 7 : most - least + 1;
  return Object.assign(found, { step: alone && span % Number(alone[1]) === 0 ? Number(alone[1]) : 0 });
}

const isRange = (values) => values.every((value, i) => value === values[0] + i);
const clock = (hour, minute) => `${hour}:${String(minute).padStart(2, '0')}`;
const and = (texts) => (texts.length > 1 ? `${texts.slice(0, -1).join(', ')} and ${texts.at(-1)}` : texts[0]);
const ordinal = (n) => `${n}${(n % 100 > 10 && n % 100 < 14 ? '' : ['', 'st', 'nd', 'rd'][n % 10]) || 'th'}`;
const ofMonths = (months) => `${and(months.map((month) => MONTHS[month - 1]))}`;

/** Within a day: {each: 'every 5 minutes'} or {at: '9:00 and 17:00'}; null without short words. */
function within(minutes, hours) {
  const during = hours && isRange(hours) ? ` from ${clock(hours[0], 0)} to ${clock(hours.at(-1), 59)}` : '';
  if (!minutes || minutes.step > 1) {
    if (hours && !during) return null;
    return { each: `${minutes ? `every ${minutes.step} minutes` : 'every minute'}${during}` };
  }
  const past = `:${String(minutes[0]).padStart(2, '0')}`;
  if (minutes.length === 1 && !hours) return { each: `every hour at ${past}` };
  if (minutes.length === 1 && hours.step > 1) return { each: `every ${hours.step} hours at ${past}` };
  if (!hours) return null;
  const times = hours.flatMap((hour) => minutes.map((minute) => clock(hour, minute)));
  if (times.length <= MOST_TIMES) return { at: and(times) };
  if (minutes.length > 1 || !during) return null;
  return { each: `every hour from ${clock(hours[0], minutes[0])} to ${clock(hours.at(-1), minutes[0])}` };
}

/** The days: [with times of the day, with something that comes all the time]; null without short words. */
function onDays(dates, months, weekdays) {
  const season = months ? ` in ${ofMonths(months)}` : '';
  if ((dates && weekdays) || (months && months.length > MOST_DAYS)) return null;
  if (dates) {
    if (dates.length > MOST_DAYS) return null;
    const dayOf = and(dates.map(ordinal));
    const on = months ? `on the ${dayOf} of ${ofMonths(months)}` : `on the ${dayOf} of every month`;
    return [on, `, ${on}`];
  }
  if (!weekdays) return [`every day${season}`, season];
  const known = weekdays.join() === '1,2,3,4,5' ? ['weekday'] : weekdays.map((day) => DAYS[day]);
  if (known.length > MOST_DAYS) return null;
  return [`every ${and(known)}${season}`, `, on ${and(known.map((day) => `${day}s`))}${season}`];
}

/** A cron expression in words; null where there are no short ones. */
export function cronInWords(expression) {
  const fields = (NAMED[expression.trim().toLowerCase()] ?? expression).trim().split(/\s+/);
  if (fields.length === 6 && /^0+$/.test(fields[0])) fields.shift();
  if (fields.length !== 5) return null;
  try {
    const [minutes, hours] = [field(fields[0], 0, 59), field(fields[1], 0, 23)];
    const [dates, months] = [field(fields[2], 1, 31), field(fields[3], 1, 12, MONTH_NUMBERS)];
    const time = within(minutes, hours);
    const days = onDays(dates, months, field(fields[4], 0, 7, DAY_NUMBERS));
    if (!time || !days) return null;
    return time.at ? `${days[0]} at ${time.at}` : `${time.each}${days[1]}`;
  } catch (problem) {
    if (problem instanceof RangeError) return null;
    throw problem;
  }
}

/** Whose clocks a schedule with cron goes by. */
export function zoneOf({ timezone, tz, utc_offset: ahead = 0 }) {
  if (timezone || tz) return timezone || tz;
  if (!ahead) return 'UTC';
  const minutes = Math.abs(ahead);
  return `UTC${ahead > 0 ? '+' : '−'}${Math.floor(minutes / 60)}${minutes % 60 ? `:${String(minutes % 60).padStart(2, '0')}` : ''}`;
}
