/** What the page uses of a storage. */
export type TabStorage = Pick<Storage, "getItem" | "setItem" | "removeItem" | "clear">;

/**
 * The session storage of this tab, or memory for what it does not take: the browser may deny it, and it may be full.
 *
 * Memory forgets at a reload, which is better than a page that does not work.
 */
export class ForgivingStorage implements TabStorage {
  readonly #memory = new Map<string, string>();

  constructor(private readonly open: () => Storage) {}

  getItem(key: string): string | null {
    return this.#memory.get(key) ?? this.#tried((storage) => storage.getItem(key));
  }

  setItem(key: string, value: string): void {
    this.#memory.delete(key);
    const isKept = this.#tried((storage) => {
      storage.setItem(key, value);
      return true;
    });
    if (isKept === null) {
      this.#tried((storage) => storage.removeItem(key));
      this.#memory.set(key, value);
    }
  }

  removeItem(key: string): void {
    this.#memory.delete(key);
    this.#tried((storage) => storage.removeItem(key));
  }

  clear(): void {
    this.#memory.clear();
    this.#tried((storage) => storage.clear());
  }

  /** Return what the storage answers; null if it refuses. */
  #tried<T>(use: (storage: Storage) => T): T | null {
    try {
      return use(this.open());
    } catch {
      return null;
    }
  }
}

export const tabStorage = new ForgivingStorage(() => window.sessionStorage);
