/** One server-sent event. */
export interface ServerEvent {
  id: string | null;
  event: string;
  data: string;
}

/**
 * Parses a stream of server-sent events, in chunks of any size (https://html.spec.whatwg.org/#event-stream-interpretation).
 *
 * `EventSource` cannot send a token, so the page reads the stream with `fetch`.
 */
export class EventParser {
  #rest = "";
  #id: string | null = null;
  #event = "";
  #data: string[] = [];

  /** Return the events that this chunk completes. */
  feed(chunk: string): ServerEvent[] {
    const text = this.#rest + chunk;
    // A final \r may be the first half of \r\n.
    const lines = text.split(/\r\n|\n|\r(?!$)/);
    this.#rest = lines.pop() ?? "";
    const found: ServerEvent[] = [];
    for (const line of lines) {
      if (line !== "") this.#field(line);
      else if (this.#data.length > 0) found.push(this.#complete());
      else this.#event = "";
    }
    return found;
  }

  #complete(): ServerEvent {
    const event = { id: this.#id, event: this.#event || "message", data: this.#data.join("\n") };
    this.#event = "";
    this.#data = [];
    return event;
  }

  #field(line: string): void {
    const colon = line.indexOf(":");
    if (colon === 0) return; // a comment
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (name === "data") this.#data.push(value);
    else if (name === "event") this.#event = value;
    else if (name === "id" && !value.includes("\0")) this.#id = value;
  }
}

/** Yield the chunks of a body as text. */
export async function* textOf(body: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const reader = body.pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>).getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield value;
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}
