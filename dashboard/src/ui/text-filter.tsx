import { useEffect, useState } from "react";

interface TextFilterProps {
  name: string;
  /** What the empty field shows. */
  hint: string;
  value: string;
  onChange: (value: string) => void;
  className?: string;
}

/** A text filter that applies when the user presses Enter or leaves the field. */
export function TextFilter({ name, hint, value, onChange, className = "" }: TextFilterProps) {
  const [text, setText] = useState(value);
  useEffect(() => setText(value), [value]);
  const apply = () => text.trim() !== value && onChange(text.trim());
  return (
    <label className={`field ${className}`}>
      <span className="field-name">{name}</span>
      <input
        value={text}
        placeholder={hint}
        onChange={(event) => setText(event.target.value)}
        onBlur={apply}
        onKeyDown={(event) => event.key === "Enter" && apply()}
      />
    </label>
  );
}
