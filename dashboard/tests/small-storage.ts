/** A session storage with room for values of `size` characters. */
export function smallStorage(size: number, content: Record<string, string> = {}): Storage {
  const items = new Map(Object.entries(content));
  return {
    getItem: (key: string) => items.get(key) ?? null,
    setItem: (key: string, value: string) => {
      if (value.length > size) throw new DOMException("full", "QuotaExceededError");
      items.set(key, value);
    },
    removeItem: (key: string) => items.delete(key),
    clear: () => items.clear(),
  } as unknown as Storage;
}
