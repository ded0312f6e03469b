import { Check, Copy } from "lucide-react";
import { useEffect, useState } from "react";
import { Button } from "react-aria-components";

interface CopyButtonProps {
  text: string;
  /** What the button copies, for its label: `uid`. */
  what: string;
  isSmall?: boolean;
}

/** Copies a text to the clipboard, and says whether that worked. */
export function CopyButton({ text, what, isSmall = false }: CopyButtonProps) {
  const [result, setResult] = useState("");
  useEffect(() => {
    if (result === "") return;
    const timer = setTimeout(() => setResult(""), 3000);
    return () => clearTimeout(timer);
  }, [result]);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setResult("Copied");
    } catch {
      // Browsers offer the clipboard only to pages of HTTPS and localhost, and ask the user for consent.
      setResult("The browser does not permit copying");
    }
  };
  const Icon = result === "Copied" ? Check : Copy;
  return (
    <>
      <Button className={isSmall ? "button job-icon-button" : "button"} aria-label={`Copy the ${what}`} onPress={copy}>
        <Icon aria-hidden size={14} />
        {!isSmall && "Copy"}
      </Button>
      <span className="secondary" role="status">
        {result}
      </span>
    </>
  );
}
