/** Return a number with its thousands apart: `100 000`. */
export function thousands(value: number): string {
  return String(value).replace(/\B(?=(\d{3})+$)/g, "\u202f");
}
