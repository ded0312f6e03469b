import { ChevronDown, ChevronUp, Regex, Search } from "lucide-react";
import { type KeyboardEvent, type RefObject, useEffect, useState } from "react";
import { Button, Input, Label, SearchField, ToggleButton } from "react-aria-components";
import { thousands } from "../../ui/numbers";

interface SearchBarProps {
  input: RefObject<HTMLInputElement | null>;
  text: string;
  onText: (text: string) => void;
  isRegex: boolean;
  onRegex: (isRegex: boolean) => void;
  /** Why the text is no regular expression; null if it is one, or need not be. */
  error: string | null;
  /** The number of matching lines; null if there are no lines to search. */
  matches: number | null;
  /** The position of the current line among the matching ones, from 1; null before the first step. */
  position: number | null;
  onStep: (step: 1 | -1) => void;
}

/** The search in a log: its text, the number of matching lines, and the steps between them. */
export function SearchBar(props: SearchBarProps) {
  const { text, error, matches, position, onStep } = props;
  const result = text === "" ? "" : (error ?? (matches === null ? "" : matchText(matches, position)));
  const onKey = (event: KeyboardEvent) => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    onStep(event.shiftKey ? -1 : 1);
  };
  return (
    <search className="log-search">
      <SearchField className="field" value={text} onChange={props.onText} isInvalid={error !== null}>
        <Label className="visually-hidden">Search in the log</Label>
        <Search aria-hidden size={14} />
        <Input ref={props.input} placeholder="Search ( / )" onKeyDown={onKey} aria-describedby="log-matches" />
      </SearchField>
      <ToggleButton
        className="button"
        isSelected={props.isRegex}
        onChange={props.onRegex}
        aria-label="Regular expression"
      >
        <Regex aria-hidden size={14} />
      </ToggleButton>
      <Button className="button" isDisabled={!matches} onPress={() => onStep(-1)} aria-label="Previous match (N)">
        <ChevronUp aria-hidden size={14} />
      </Button>
      <Button className="button" isDisabled={!matches} onPress={() => onStep(1)} aria-label="Next match (n)">
        <ChevronDown aria-hidden size={14} />
      </Button>
      <span id="log-matches" className={error === null ? "secondary log-matches" : "log-matches tone-failed"}>
        {result}
      </span>
      <span className="visually-hidden" role="status">
        {useSettled(result)}
      </span>
    </search>
  );
}

function matchText(matches: number, position: number | null): string {
  if (matches === 0) return "No line matches";
  if (position === null) return matches === 1 ? "1 line matches" : `${thousands(matches)} lines match`;
  return `${thousands(position)} of ${thousands(matches)}`;
}

/** Return the text once it has not changed for a second, so that a screen reader does not read each new number. */
function useSettled(text: string): string {
  const [settled, setSettled] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(text), 1000);
    return () => clearTimeout(timer);
  }, [text]);
  return settled;
}
