import type { LogLine } from "./lines";

export const MOST_LINES = 100_000;
/** The characters of all lines together: 100 000 lines of a mebibyte each would not fit into memory. */
export const MOST_CHARACTERS = 64 * 1024 * 1024;

/** The last lines of a log. Lines have numbers from 0 in the order of arrival, which they keep. */
export class LineRing {
  readonly #lines: (LogLine | undefined)[] = [];
  #first = 0;
  #end = 0;
  #characters = 0;
  #widestSource = 0;

  constructor(
    private readonly mostLines: number = MOST_LINES,
    private readonly mostCharacters: number = MOST_CHARACTERS,
  ) {}

  /** The number of the oldest line that is kept. It is also the number of dropped lines. */
  get first(): number {
    return this.#first;
  }

  /** The number of the next line. */
  get end(): number {
    return this.#end;
  }

  get length(): number {
    return this.#end - this.#first;
  }

  /** The number of characters of the longest source, so that the texts of a merged log begin in one column. */
  get widestSource(): number {
    return this.#widestSource;
  }

  append(line: LogLine): void {
    this.#widestSource = Math.max(this.#widestSource, line.source.length);
    if (this.length === this.mostLines) this.#drop();
    this.#lines[this.#end % this.mostLines] = line;
    this.#end += 1;
    this.#characters += line.text.length;
    while (this.#characters > this.mostCharacters && this.length > 1) this.#drop();
  }

  /** Return the line with this number; undefined if it was dropped or has not arrived. */
  get(number: number): LogLine | undefined {
    return number >= this.#first && number < this.#end ? this.#lines[number % this.mostLines] : undefined;
  }

  /** Return the last lines, at most `count`. */
  last(count: number): LogLine[] {
    const lines: LogLine[] = [];
    for (let number = Math.max(this.#first, this.#end - count); number < this.#end; number += 1) {
      const line = this.get(number);
      if (line !== undefined) lines.push(line);
    }
    return lines;
  }

  #drop(): void {
    const slot = this.#first % this.mostLines;
    this.#characters -= this.#lines[slot]?.text.length ?? 0;
    this.#lines[slot] = undefined;
    this.#first += 1;
  }
}
