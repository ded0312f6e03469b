/** Milliseconds between the end of a read and the next one while changes arrive. */
export const PERIOD = 2000;

/**
 * Calls `read` after requests, at most once in each period: at once after the first request, and after the last.
 *
 * A read that takes longer than the period is not interrupted by the next one: it would never end.
 */
export class Rereading {
  #timer: ReturnType<typeof setTimeout> | undefined;
  #isRequested = false;
  #isBusy = false;
  #isEnded = false;

  constructor(private readonly read: () => unknown) {}

  request(): void {
    this.#isRequested = true;
    if (!this.#isBusy && !this.#isEnded) void this.#run();
  }

  end(): void {
    this.#isEnded = true;
    clearTimeout(this.#timer);
  }

  async #run(): Promise<void> {
    this.#isRequested = false;
    this.#isBusy = true;
    await this.read();
    if (!this.#isEnded) this.#timer = setTimeout(() => this.#rest(), PERIOD);
  }

  #rest(): void {
    this.#isBusy = false;
    if (this.#isRequested) void this.#run();
  }
}
