/** The largest number of characters of a line. A longer one continues on the next line. */
export const LONGEST_LINE = 2 * 1024 * 1024;

/** Splits the bytes of a log into lines, in chunks of any size. */
export class LineSplitter {
  readonly #decoder = new TextDecoder();
  #rest = "";

  constructor(private readonly longest: number = LONGEST_LINE) {}

  /** Return the lines that this chunk completes, without their ends. */
  feed(chunk: Uint8Array): string[] {
    return this.#split(this.#decoder.decode(chunk, { stream: true }));
  }

  /** Return the last line if the log does not end with a line feed. */
  end(): string[] {
    const lines = this.#split(this.#decoder.decode());
    if (this.#rest !== "") lines.push(this.#rest);
    this.#rest = "";
    return lines;
  }

  #split(text: string): string[] {
    const pieces = text.split("\n");
    // Only the new text is searched, so that a long line in many chunks is not searched again with each of them.
    pieces[0] = this.#rest + pieces[0];
    this.#rest = pieces.pop() ?? "";
    const lines = pieces.flatMap((line) => this.#bounded(line));
    if (this.#rest.length > this.longest) {
      const parts = this.#bounded(this.#rest);
      this.#rest = parts.pop() ?? "";
      lines.push(...parts);
    }
    return lines;
  }

  #bounded(line: string): string[] {
    if (line.length <= this.longest) return [line];
    const parts: string[] = [];
    let start = 0;
    while (line.length - start > this.longest) {
      // A character outside the basic plane consists of two units, which must stay together.
      const isPair = isHighSurrogate(line.charCodeAt(start + this.longest - 1));
      const end = start + this.longest - (isPair ? 1 : 0);
      parts.push(line.slice(start, end));
      start = end;
    }
    return [...parts, line.slice(start)];
  }
}

function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff;
}

/**
 * Return what a terminal shows last of a line. A progress bar returns to the beginning of its line (`\r`) and writes
 * its next state over the former one.
 */
export function lastState(line: string): string {
  if (!line.includes("\r")) return line;
  const visible = line.replace(/\r+$/, "");
  return visible.slice(visible.lastIndexOf("\r") + 1);
}
