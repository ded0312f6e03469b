import { setDiagnostics } from "@codemirror/lint";
import { EditorState } from "@codemirror/state";
import { EditorView } from "@codemirror/view";
import { type Ref, useEffect, useImperativeHandle, useRef } from "react";
import type { TextProblem } from "./documents";
import { diagnosticsOf, manifestEditor, type Suggest } from "./editor-extensions";

export interface EditorHandle {
  /** Move the cursor to this offset, and the focus to the editor. */
  reveal: (offset: number) => void;
}

interface EditorProps {
  text: string;
  /** Changes when `text` was replaced by something else than the editor, such as an example. */
  revision: number;
  onChange: (text: string) => void;
  suggest: Suggest;
  /** The problems of exactly this text. */
  problems: readonly TextProblem[];
  ref?: Ref<EditorHandle>;
}

/**
 * The editor of the manifests.
 *
 * It is in an open shadow root: there CodeMirror uses constructed style sheets, and elsewhere style elements, which the
 * Content-Security-Policy forbids.
 */
export function Editor({ text, revision, onChange, suggest, problems, ref }: EditorProps) {
  const host = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | null>(null);
  const latest = useRef({ text, onChange, suggest });
  latest.current = { text, onChange, suggest };

  useEffect(() => {
    const element = host.current;
    if (element === null) return;
    const root = element.shadowRoot ?? element.attachShadow({ mode: "open" });
    const extensions = manifestEditor(
      (present, offset) => latest.current.suggest(present, offset),
      (changed) => latest.current.onChange(changed),
    );
    const editor = new EditorView({
      state: EditorState.create({ doc: latest.current.text, extensions }),
      root,
      parent: root,
    });
    view.current = editor;
    return () => {
      view.current = null;
      editor.destroy();
    };
  }, []);

  // While the user types, `text` is older than the text of the editor, so it replaces that only with a new revision.
  // biome-ignore lint/correctness/useExhaustiveDependencies: see above
  useEffect(() => {
    const editor = view.current;
    const { text: replacement } = latest.current;
    if (editor === null || editor.state.doc.toString() === replacement) return;
    const changes = { from: 0, to: editor.state.doc.length, insert: replacement };
    editor.dispatch({ changes, selection: { anchor: 0 } });
  }, [revision]);

  useEffect(() => {
    const editor = view.current;
    if (editor === null) return;
    editor.dispatch(setDiagnostics(editor.state, diagnosticsOf(problems, editor.state.doc.length)));
  }, [problems]);

  useImperativeHandle(ref, () => ({
    reveal: (offset) => {
      const editor = view.current;
      if (editor === null) return;
      const anchor = Math.min(offset, editor.state.doc.length);
      editor.dispatch({ selection: { anchor }, effects: EditorView.scrollIntoView(anchor, { y: "center" }) });
      editor.focus();
    },
  }));

  return <div ref={host} className="editor" />;
}
