import { backoff, pause } from "../../api/backoff";
import { ApiError } from "../../api/problems";
import type { Transport } from "../../api/transport";
import { Store } from "../../live/store";
import { Continuation, linesAfter } from "./continuation";
import { CUT_OFF, cutOffReason, LineReader, type RawLine, stamped } from "./lines";
import { acceptOf, type LogSource, leftOutOf, logPath, logSourceOf } from "./log-request";
import { mergedEntry } from "./merged";
import { LineRing, MOST_LINES } from "./ring";
import type { Target } from "./selection";
import { LineSplitter } from "./splitter";

export interface LogState {
  /**
   * `waiting`: no such log exists yet. `ended`: the gateway sent all of it. `interrupted`: it is being continued.
   * `failed`: the gateway refuses it.
   */
  phase: "connecting" | "open" | "interrupted" | "waiting" | "ended" | "failed";
  /** Where the log of one replica comes from; null until the gateway has answered. */
  source: LogSource | null;
  /** Why the log was interrupted; null if it was not, or if it has continued. */
  interruption: string | null;
  /** The replicas that a merged log leaves out; empty if it has all of them. */
  leftOut: string;
  /** Whether lines may be missing or repeated where the log was interrupted. */
  hasGap: boolean;
  error: Error | null;
}

const INITIAL: LogState = {
  phase: "connecting",
  source: null,
  interruption: null,
  leftOut: "",
  hasGap: false,
  error: null,
};

/** Known lines that are looked for in a stored log. */
const KNOWN = 20;
const HIDDEN_FOR = 20_000;
/** Milliseconds for which lines are taken without a pause: half of a frame. */
const BUSY = 8;

/** The part of a log that the page requests of each replica. */
export interface FollowOptions {
  uid: string;
  target: Target;
  tailLines: number;
  /** Whether more lines may come. Otherwise the lines of a merged log are in the order of their times. */
  isGrowing: boolean;
}

/**
 * Reads a log and follows it, from `start` until `stop`.
 *
 * A log that is interrupted is continued. A tab that stays hidden closes its request, as that of `Changes`.
 */
export class LogFollower {
  readonly state = new Store<LogState>(INITIAL);
  readonly ring = new LineRing();
  /** Increases whenever the ring has changed, at most once in a frame. Apart from `state`, so that only lines follow it. */
  readonly version = new Store(0);
  /** The replicas of a merged log, as `worker[3]`. Without a line of each, an interrupted log is read again as a whole. */
  replicas: readonly string[] = [];
  readonly #reader = new LineReader();
  readonly #continuation = new Continuation();
  #running: AbortController | null = null;
  /** Whether lines without times have arrived: they cannot be told from others when the log is read again. */
  #hasUntimed = false;
  #hideTimer: ReturnType<typeof setTimeout> | undefined;
  #isDrawing = false;

  constructor(
    private readonly transport: Transport,
    private readonly options: FollowOptions,
  ) {}

  start(): void {
    document.addEventListener("visibilitychange", this.#onVisibility);
    this.#begin();
  }

  stop(): void {
    document.removeEventListener("visibilitychange", this.#onVisibility);
    clearTimeout(this.#hideTimer);
    this.#end();
  }

  /** Request a log again that did not exist or was refused. A log that is open stays as it is. */
  retry(): void {
    const { phase } = this.state.get();
    if (this.#running !== null && (phase === "waiting" || phase === "failed")) this.#begin();
  }

  #begin(): void {
    this.#end();
    this.#running = new AbortController();
    void this.#run(this.#running.signal);
  }

  #end(): void {
    this.#running?.abort();
    this.#running = null;
  }

  readonly #onVisibility = () => {
    clearTimeout(this.#hideTimer);
    const isDone = ["ended", "failed", "waiting"].includes(this.state.get().phase);
    if (document.hidden && !isDone) this.#hideTimer = setTimeout(() => this.#end(), HIDDEN_FOR);
    else if (!document.hidden && this.#running === null) this.#begin();
  };

  async #run(signal: AbortSignal): Promise<void> {
    let failures = 0;
    while (!signal.aborted) {
      try {
        const isComplete = await this.#follow(signal, () => {
          failures = 0;
        });
        if (signal.aborted) return;
        if (isComplete) return this.#set({ phase: "ended", interruption: null });
        failures += 1;
      } catch (error) {
        if (signal.aborted) return;
        failures += 1;
        if (!(error instanceof ApiError && error.isTemporary)) return this.#refused(error as Error);
        this.#set({ phase: "interrupted", interruption: error.message });
        if (error.retryAfter !== null) await pause(error.retryAfter * 1000, signal);
      }
      await pause(backoff(failures), signal);
    }
  }

  #refused(error: Error): void {
    const isAbsent = error instanceof ApiError && error.code === "NoLog" && this.ring.end === 0;
    this.#set({ phase: isAbsent ? "waiting" : "failed", error, interruption: null });
  }

  /** Read the log until it ends, and return whether that was its end. */
  async #follow(signal: AbortSignal, onLine: () => void): Promise<boolean> {
    const { uid, target, tailLines, isGrowing } = this.options;
    // A duration until now would lose older lines that had not arrived yet.
    const sinceTime = this.#continuation.since(target.kind === "merged" ? this.replicas : [""]);
    const path = logPath(uid, target, { follow: isGrowing, tailLines, sinceTime, timestamps: true });
    const response = await this.transport.get(path, { Accept: acceptOf(target) }, signal);
    const source = logSourceOf(response.headers);
    this.#set({ phase: "open", source, leftOut: leftOutOf(response.headers), interruption: null, error: null });
    this.#continuation.restart();
    const isStored = source?.isLive === false;
    if (this.#hasUntimed && !isStored) this.#set({ hasGap: true });
    const stored: string[] = [];
    let reason: string | null = null;
    const take = (raw: string) => {
      onLine();
      if (isStored) stored.push(raw);
      else reason = this.#take(raw) ?? reason;
    };
    const isWhole = await this.#read(response, take);
    // Nothing else may be written into the ring of a follower that has been stopped.
    if (signal.aborted) return false;
    if (isStored) this.#addStored(stored);
    if (isWhole && reason === null) return true;
    this.#set({ phase: "interrupted", interruption: reason ?? "the connection was lost" });
    return false;
  }

  /** Pass each line to `take`, and return whether the body is complete. */
  async #read(response: Response, take: (raw: string) => void): Promise<boolean> {
    const splitter = new LineSplitter();
    const reader = response.body?.getReader();
    let begun = performance.now();
    try {
      for (;;) {
        const { done, value } = (await reader?.read()) ?? { done: true, value: undefined };
        if (done) break;
        for (const line of splitter.feed(value)) take(line);
        // Chunks that have arrived are read without a pause, in which the page could draw.
        if (performance.now() - begun > BUSY) {
          await new Promise((resolve) => setTimeout(resolve));
          begun = performance.now();
        }
      }
    } catch {
      // The gateway ends a log early without the last chunk. The rest of the line is its reason, or half a line.
      const rest = splitter.end().filter((line) => line.includes(CUT_OFF));
      for (const line of rest) take(line);
      return false;
    }
    for (const line of splitter.end()) take(line);
    return true;
  }

  /** Add a line, and return the reason if it says why the log is cut off. */
  #take(raw: string): string | null {
    if (this.options.target.kind === "merged") {
      const entry = mergedEntry(raw);
      if (entry.kind === "line") this.#add(entry.line);
      return entry.kind === "cutOff" ? entry.reason : null;
    }
    const line = { source: "", ...stamped(raw) };
    if (line.at === null) {
      const reason = cutOffReason(raw);
      // The gateway writes this line, and an empty one before it. Those of the container have times.
      if (reason !== null || raw === "") return reason;
    }
    this.#add(line);
    return null;
  }

  #add(line: RawLine): void {
    if (!this.#continuation.accepts(line)) return;
    this.#hasUntimed ||= line.at === null;
    this.ring.append(this.#reader.read(line));
    this.#draw();
  }

  #addStored(lines: readonly string[]): void {
    const texts = lines.slice(-MOST_LINES).map((raw) => this.#reader.read({ source: "", at: null, raw }));
    const known = this.ring.last(KNOWN).map((line) => line.text);
    const next = linesAfter(
      known,
      texts.map((line) => line.text),
    );
    if (next === null) this.#set({ hasGap: true });
    for (const line of texts.slice(texts.length - (next ?? texts).length)) this.ring.append(line);
    this.#draw();
  }

  /** Show the new lines in the next frame, together with all others that arrive until then. */
  #draw(): void {
    if (this.#isDrawing) return;
    this.#isDrawing = true;
    requestAnimationFrame(() => {
      this.#isDrawing = false;
      this.version.update((version) => version + 1);
    });
  }

  #set(change: Partial<LogState>): void {
    this.state.update((state) => ({ ...state, ...change }));
  }
}
