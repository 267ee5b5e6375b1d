// Schedules in words.
import assert from 'node:assert/strict';
import test from 'node:test';
import { cronInWords, zoneOf } from '../../python/jqmaster/ui/static/rhythm.js';

const WORDS = {
  '* * * * *': 'every minute',
  '*/5 * * * *': 'every 5 minutes',
  '@hourly': 'every hour at :00',
  '15 * * * *': 'every hour at :15',
  '0 */6 * * *': 'every 6 hours at :00',
  '0 9 * * 1-5': 'every weekday at 9:00',
  '0 9 * * mon-fri': 'every weekday at 9:00',
  '30 2 * * *': 'every day at 2:30',
  '0 0 9 * * *': 'every day at 9:00',
  '0 9,17 * * *': 'every day at 9:00 and 17:00',
  '0,30 9 * * sat,SUN': 'every Sunday and Saturday at 9:00 and 9:30',
  '0 8 * * 7': 'every Sunday at 8:00',
  '0 0 * * fri-sun': 'every Sunday, Friday and Saturday at 0:00',
  '*/10 8-17 * * mon-fri': 'every 10 minutes from 8:00 to 17:59, on weekdays',
  '5 8-17 * * *': 'every hour from 8:05 to 17:05',
  '0 0 1 * *': 'on the 1st of every month at 0:00',
  '30 4 1,15 * *': 'on the 1st and 15th of every month at 4:30',
  '@yearly': 'on the 1st of January at 0:00',
  '0 6 * jun-aug *': 'every day in June, July and August at 6:00',
};

test('the usual forms are in words', () => {
  for (const [cron, words] of Object.entries(WORDS)) assert.equal(cronInWords(cron), words, cron);
});

test('what has no short words, or would be said wrongly, has none', () => {
  // 7 does not divide an hour; either day will do; seconds; many; nonsense.
  for (const cron of [
    '*/7 * * * *',
    '0 */5 * * *',
    '0 9 1 * mon',
    '30 * * * * *',
    '1-50/3 4 * * *',
    '',
    'a b c d e',
    '* * *',
  ]) {
    assert.equal(cronInWords(cron), null, cron);
  }
});

test('the zone is that of the clocks', () => {
  assert.equal(zoneOf({}), 'UTC');
  assert.equal(zoneOf({ utc_offset: 120 }), 'UTC+2');
  assert.equal(zoneOf({ utc_offset: -90 }), 'UTC−1:30');
  assert.equal(zoneOf({ timezone: 'Europe/Berlin', tz: 'CET-1CEST' }), 'Europe/Berlin');
});
