import {
  autocompletion,
  type Completion,
  type CompletionContext,
  type CompletionResult,
  closeBrackets,
  completionKeymap,
  startCompletion,
} from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { yaml } from "@codemirror/lang-yaml";
import { bracketMatching, HighlightStyle, indentOnInput, syntaxHighlighting } from "@codemirror/language";
import { type Diagnostic, lintGutter, lintKeymap } from "@codemirror/lint";
import { search, searchKeymap } from "@codemirror/search";
import { EditorState, type Extension } from "@codemirror/state";
import {
  drawSelection,
  EditorView,
  highlightActiveLine,
  highlightActiveLineGutter,
  keymap,
  lineNumbers,
} from "@codemirror/view";
import { tags } from "@lezer/highlight";
import type { Suggestion, Suggestions } from "./completion";
import type { TextProblem } from "./documents";

export type Suggest = (text: string, offset: number) => Promise<Suggestions | null>;

/** Return everything that makes a text area an editor of manifests. Tab moves the focus, as it does in a form. */
export function manifestEditor(suggest: Suggest, onChange: (text: string) => void): Extension {
  return [
    lineNumbers(),
    highlightActiveLineGutter(),
    highlightActiveLine(),
    history(),
    drawSelection(),
    indentOnInput(),
    bracketMatching(),
    closeBrackets(),
    search({ top: true }),
    lintGutter(),
    yaml(),
    TYPING_OVER,
    EditorState.tabSize.of(2),
    autocompletion({ override: [completionSource(suggest)], icons: false }),
    keymap.of([...completionKeymap, ...lintKeymap, ...searchKeymap, ...historyKeymap, ...defaultKeymap]),
    syntaxHighlighting(HIGHLIGHTING),
    THEME,
    EditorView.contentAttributes.of({ "aria-label": "Manifest", spellcheck: "false", tabindex: "0" }),
    EditorView.updateListener.of((update) => {
      if (update.docChanged) onChange(update.state.doc.toString());
    }),
  ];
}

export function diagnosticsOf(problems: readonly TextProblem[], length: number): Diagnostic[] {
  return problems.flatMap(({ place, severity, field, message }) =>
    place === null || place.to > length
      ? []
      : [{ from: place.from, to: place.to, severity, message: field === "" ? message : `${field}: ${message}` }],
  );
}

function completionSource(suggest: Suggest): (context: CompletionContext) => Promise<CompletionResult | null> {
  return async (context) => {
    const found = await suggest(context.state.doc.toString(), context.pos);
    if (found === null || (!context.explicit && found.from === context.pos && !isAfterSpace(context))) return null;
    return { from: found.from, to: found.to, options: found.options.map(completionOf), validFor: /^[\w./-]*$/ };
  };
}

/** The list opens by itself at the place of a value, and of a new key, but not on an empty first column. */
function isAfterSpace(context: CompletionContext): boolean {
  return context.matchBefore(/(?::\s+|^\s+(?:-\s+)?)$/) !== null;
}

function completionOf(suggestion: Suggestion): Completion {
  return {
    label: suggestion.label,
    detail: suggestion.detail,
    info: suggestion.description || undefined,
    boost: suggestion.isRequired ? 1 : 0,
    apply: (view: EditorView, _completion: Completion, from: number, to: number) => {
      const { insert } = suggestion;
      const selection = { anchor: from + insert.length };
      view.dispatch({ changes: { from, to, insert }, selection, userEvent: "input.complete" });
      if (suggestion.kind === "property") startCompletion(view);
    },
  } as Completion;
}

/**
 * Replaces the selection by what the user types.
 *
 * A browser would keep the style of the selection in a style attribute, which the Content-Security-Policy forbids.
 */
const TYPING_OVER = EditorView.domEventHandlers({
  beforeinput: (event, view) => {
    const { main } = view.state.selection;
    const typed = event.data;
    if (event.inputType !== "insertText" || typed === null || main.empty || view.composing) return false;
    event.preventDefault();
    const insert = () => view.state.update(view.state.replaceSelection(typed), { userEvent: "input.type" });
    const handlers = view.state.facet(EditorView.inputHandler);
    if (!handlers.some((handle) => handle(view, main.from, main.to, typed, insert))) view.dispatch(insert());
    return true;
  },
});

const HIGHLIGHTING = HighlightStyle.define([
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: "var(--accent)" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--succeeded)" },
  { tag: [tags.number, tags.bool, tags.null, tags.keyword], color: "var(--changing)" },
  { tag: [tags.comment, tags.lineComment], color: "var(--secondary)", fontStyle: "italic" },
  { tag: [tags.meta, tags.labelName, tags.typeName], color: "var(--waiting)" },
]);

/** Custom properties cross the boundary of the shadow root, so the editor follows the light or dark mode of the page. */
const THEME = EditorView.theme({
  "&": { height: "100%", fontSize: "13px", color: "var(--text)", backgroundColor: "var(--page)" },
  // The element around the shadow root shows the focus.
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.5", overflow: "auto" },
  ".cm-content": { caretColor: "var(--text)", padding: "8px 0" },
  ".cm-cursor": { borderLeftColor: "var(--text)", borderLeftWidth: "2px" },
  ".cm-gutters": { backgroundColor: "var(--raised)", color: "var(--secondary)", borderRight: "1px solid var(--line)" },
  ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "color-mix(in srgb, var(--accent) 8%, transparent)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": {
    backgroundColor: "color-mix(in srgb, var(--accent) 30%, transparent)",
  },
  ".cm-panels, .cm-tooltip": {
    backgroundColor: "var(--raised)",
    color: "var(--text)",
    border: "1px solid var(--field-line)",
  },
  ".cm-tooltip": { borderRadius: "6px", maxWidth: "min(36rem, 90vw)" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul": { fontFamily: "var(--mono)", maxHeight: "16rem" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul > li": { padding: "4px 8px" },
  ".cm-tooltip-autocomplete ul li[aria-selected]": { backgroundColor: "var(--accent)", color: "var(--on-accent)" },
  ".cm-completionDetail": { color: "var(--secondary)", fontStyle: "normal" },
  "li[aria-selected] .cm-completionDetail": { color: "inherit" },
  ".cm-completionInfo": { padding: "6px 10px", whiteSpace: "pre-wrap" },
  ".cm-diagnostic": { padding: "4px 10px", whiteSpace: "pre-wrap" },
  // CodeMirror marks diagnostics with images in data URLs, which the Content-Security-Policy forbids.
  ".cm-lintRange": { backgroundImage: "none", textDecorationLine: "underline", textDecorationStyle: "wavy" },
  ".cm-lintRange-error": { textDecorationColor: "var(--failed)" },
  ".cm-lintRange-warning": { textDecorationColor: "var(--waiting)" },
  ".cm-lintRange-info": { textDecorationColor: "var(--running)" },
  ".cm-lint-marker": { content: "normal", textAlign: "center", lineHeight: "1.2em" },
  ".cm-lint-marker-error": { content: "normal", color: "var(--failed)" },
  ".cm-lint-marker-error::before": { content: "'✖'" },
  ".cm-lint-marker-warning": { content: "normal", color: "var(--waiting)" },
  ".cm-lint-marker-warning::before": { content: "'▲'" },
  ".cm-lint-marker-info": { content: "normal", color: "var(--running)" },
  ".cm-lint-marker-info::before": { content: "'●'" },
  ".cm-panel .cm-button, .cm-panel .cm-textfield": {
    font: "inherit",
    color: "inherit",
    backgroundImage: "none",
    backgroundColor: "var(--page)",
    border: "1px solid var(--field-line)",
    borderRadius: "6px",
  },
  ".cm-panel button[name=close]": { color: "inherit", minWidth: "24px", minHeight: "24px" },
});
