// JSON as it is typed: where it is wrong, by line and column, and without loss of what numbers are (1.0 is not 1 here).

const DEEPEST = 200;
const NUMBER = /-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?/y;
const WORD = /true|false|null/y;
const BLANK = /[ \t\n\r]*/y;

class Wrong extends Error {
  constructor(at, message) {
    super(message);
    this.at = at;
  }
}

class Reader {
  constructor(text) {
    this.text = text;
    this.at = 0;
  }

  blank() {
    BLANK.lastIndex = this.at;
    BLANK.exec(this.text);
    this.at = BLANK.lastIndex;
  }

  seen() {
    return this.at < this.text.length ? `“${String.fromCodePoint(this.text.codePointAt(this.at))}”` : 'the end';
  }

  fits(pattern) {
    pattern.lastIndex = this.at;
    if (!pattern.test(this.text)) return false;
    this.at = pattern.lastIndex;
    return true;
  }

  string(what) {
    if (this.text[this.at] !== '"') throw new Wrong(this.at, `expected ${what} in double quotes, found ${this.seen()}`);
    const begin = this.at;
    for (this.at += 1; this.text[this.at] !== '"'; this.at += 1) {
      const code = this.text.charCodeAt(this.at);
      if (Number.isNaN(code)) throw new Wrong(begin, 'this text has no end');
      if (code < 32)
        throw new Wrong(
          this.at,
          code === 10
            ? 'a text ends before the end of its line; a line break in it is \\n'
            : 'a control character in a text',
        );
      if (code === 92) {
        this.at += 1;
        const good =
          this.text[this.at] === 'u'
            ? /^[0-9a-fA-F]{4}/.test(this.text.slice(this.at + 1, this.at + 5))
            : '"\\/bfnrt'.includes(this.text[this.at] || ' ');
        if (!good) throw new Wrong(this.at - 1, 'no such escape; a backslash is \\\\');
      }
    }
    this.at += 1;
  }

  members(close, member) {
    this.at += 1;
    this.blank();
    if (this.text[this.at] === close) {
      this.at += 1;
      return;
    }
    for (;;) {
      member();
      this.blank();
      const mark = this.text[this.at];
      if (mark !== ',' && mark !== close)
        throw new Wrong(this.at, `expected a comma or ${close}, found ${this.seen()}`);
      this.at += 1;
      if (mark === close) return;
      this.blank();
      if (this.text[this.at] === close) throw new Wrong(this.at, `expected more after the comma, found ${this.seen()}`);
    }
  }

  value(depth) {
    this.blank();
    if (depth > DEEPEST) throw new Wrong(this.at, `nested deeper than ${DEEPEST} levels`);
    const mark = this.text[this.at];
    if (mark === '"') this.string('a text');
    else if (mark === '[') this.members(']', () => this.value(depth + 1));
    else if (mark === '{') {
      this.members('}', () => {
        this.string('a key');
        this.blank();
        if (this.text[this.at] !== ':')
          throw new Wrong(this.at, `expected a colon after the key, found ${this.seen()}`);
        this.at += 1;
        this.value(depth + 1);
      });
    } else if (!this.fits(WORD) && !this.fits(NUMBER))
      throw new Wrong(this.at, `expected a value, found ${this.seen()}`);
  }
}

/** What is wrong with a text as JSON: null, or {line, column, at, message}. */
export function jsonProblem(text) {
  const reader = new Reader(text);
  try {
    reader.value(1);
    reader.blank();
    if (reader.at < text.length) throw new Wrong(reader.at, `expected nothing more, found ${reader.seen()}`);
    return null;
  } catch (problem) {
    if (!(problem instanceof Wrong)) throw problem;
    const before = text.slice(0, problem.at).split('\n');
    return { at: problem.at, line: before.length, column: before.at(-1).length + 1, message: problem.message };
  }
}

/** The value of a text, its numbers as they are written. */
export function exactParse(text) {
  return JSON.parse(text, (_key, value, context) => {
    const source = context?.source;
    return typeof value === 'number' && source && String(value) !== source && JSON.rawJSON
      ? JSON.rawJSON(source)
      : value;
  });
}
