import { backoff, pause } from "../api/backoff";
import { EventParser, type ServerEvent, textOf } from "../api/events";
import type { Transport } from "../api/transport";

/** What a subscriber learns from the stream of a resource. */
export interface ChangeListener<T> {
  /** A change, with the current status of its object. */
  onChange(status: T, type: string): void;
  /** Changes may have been missed: read everything again. Also called when the stream is first ready. */
  onReset(): void;
}

const HIDDEN_FOR = 20_000;
/** Milliseconds without a byte after which the connection is dead: the gateway sends one every 15 s. */
const SILENT_FOR = 45_000;

/**
 * Follows the changes of all objects of one resource, in one stream for the whole page.
 *
 * The stream begins with the first subscriber and ends with the last. It reconnects with the id of its last event, so it
 * misses nothing. A tab that stays hidden closes it: browsers open at most six connections to one origin, and several
 * forgotten tabs would use all of them.
 */
export class Changes<T> {
  readonly #listeners = new Set<ChangeListener<T>>();
  #running: AbortController | null = null;
  #lastId: string | null = null;
  #hideTimer: ReturnType<typeof setTimeout> | undefined;

  /** `resource` is a path segment such as `jobs`; `event` is the name of its events. */
  constructor(
    private readonly transport: Transport,
    private readonly resource: string,
    private readonly event: string,
  ) {}

  subscribe(listener: ChangeListener<T>): () => void {
    this.#listeners.add(listener);
    if (this.#listeners.size === 1) this.#begin();
    else if (this.#lastId !== null) listener.onReset();
    return () => {
      this.#listeners.delete(listener);
      if (this.#listeners.size === 0) this.#end();
    };
  }

  /** Forget the position, and follow from the present state: another token may reach other objects. */
  restart(): void {
    this.#lastId = null;
    if (this.#running === null) return;
    this.#stop();
    this.#start();
  }

  #begin(): void {
    document.addEventListener("visibilitychange", this.#onVisibility);
    this.#start();
  }

  #end(): void {
    document.removeEventListener("visibilitychange", this.#onVisibility);
    clearTimeout(this.#hideTimer);
    this.#stop();
    this.#lastId = null;
  }

  #start(): void {
    this.#running = new AbortController();
    void this.#run(this.#running.signal);
  }

  #stop(): void {
    this.#running?.abort();
    this.#running = null;
  }

  readonly #onVisibility = () => {
    clearTimeout(this.#hideTimer);
    if (document.hidden) this.#hideTimer = setTimeout(() => this.#stop(), HIDDEN_FOR);
    else if (this.#running === null) this.#start();
  };

  async #run(signal: AbortSignal): Promise<void> {
    let failures = 0;
    while (!signal.aborted) {
      // A proxy may answer with another page, which is no stream: an answer without an event is a failure too.
      const hadEvents = await this.#follow(signal).catch(() => false); // the transport has reported the error
      failures = hadEvents ? 0 : failures + 1;
      // A stream ends after ten minutes, or when the gateway stops: the first attempt follows at once.
      await pause(failures === 0 ? 100 : backoff(failures), signal);
    }
  }

  /** Follow until the stream ends. Return whether it had events. */
  async #follow(signal: AbortSignal): Promise<boolean> {
    const silence = new AbortController();
    let timer = setTimeout(() => silence.abort(), SILENT_FOR);
    let hadEvents = false;
    try {
      const headers: Record<string, string> = { Accept: "text/event-stream" };
      if (this.#lastId !== null) headers["Last-Event-ID"] = this.#lastId;
      const either = AbortSignal.any([signal, silence.signal]);
      const response = await this.transport.get(`api/v1/${this.resource}/watch`, headers, either);
      if (response.body === null) return false;
      const parser = new EventParser();
      for await (const chunk of textOf(response.body)) {
        clearTimeout(timer);
        timer = setTimeout(() => silence.abort(), SILENT_FOR);
        for (const event of parser.feed(chunk)) {
          hadEvents = true;
          if (this.#dispatch(event)) return true;
        }
      }
      return hadEvents;
    } catch (error) {
      if (hadEvents && silence.signal.aborted) return true;
      throw error;
    } finally {
      clearTimeout(timer);
    }
  }

  /** Pass an event on, and return whether it ends the stream. */
  #dispatch(event: ServerEvent): boolean {
    const isFirst = this.#lastId === null;
    if (event.id !== null) this.#lastId = event.id;
    if (event.event === this.event) {
      const change = JSON.parse(event.data) as { type: string; object: T };
      for (const listener of this.#listeners) listener.onChange(change.object, change.type);
    } else if (event.event === "reset" || (event.event === "ready" && isFirst)) {
      for (const listener of this.#listeners) listener.onReset();
    } else if (event.event === "denied") {
      throw new Error("the token was revoked or changed");
    }
    return event.event === "shutdown";
  }
}
