/**
 * Changes what React Aria does against the Content-Security-Policy of the page (app/api/pages/dashboard.py), at the build.
 *
 * The policy permits neither HTML from text (Trusted Types), not even an empty one, nor style elements. A refused
 * assignment throws, and React then removes the page. A build fails if a text is absent, because a new version of
 * React Aria needs a new look.
 */
import type { Plugin } from "vite";

interface Replacement {
  /** The end of the path of a module. */
  module: string;
  from: string;
  to: string;
}

const REPLACEMENTS: readonly Replacement[] = [
  // The text that a number field announces to screen readers.
  {
    module: "react-aria/dist/private/live-announcer/LiveAnnouncer.mjs",
    from: ".innerHTML = ''",
    to: ".replaceChildren()",
  },
  // Everything that can be pressed adds a style element. styles.css contains its rule.
  {
    module: "react-aria/dist/private/interactions/usePress.mjs",
    from: "if (!domRef || process.env.NODE_ENV === 'test') return;",
    to: "return;",
  },
  // On iOS, a dialog adds a style element while it is open. styles.css contains its rule.
  {
    module: "react-aria/dist/private/overlays/usePreventScroll.mjs",
    from: "document.head.prepend(style)",
    to: "",
  },
];

export function reactAriaCsp(): Plugin {
  const missing = new Set(REPLACEMENTS);
  return {
    name: "react-aria-csp",
    apply: "build",
    buildStart() {
      for (const replacement of REPLACEMENTS) missing.add(replacement);
    },
    transform(code, id) {
      const found = REPLACEMENTS.filter(({ module, from }) => id.endsWith(module) && code.includes(from));
      if (found.length === 0) return null;
      for (const replacement of found) missing.delete(replacement);
      return { code: found.reduce((text, { from, to }) => text.replaceAll(from, to), code), map: null };
    },
    generateBundle() {
      const [first] = missing;
      if (first !== undefined) this.error(`${first.module} does not contain ${first.from}`);
    },
  };
}
