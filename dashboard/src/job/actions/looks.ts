import { Ban, CirclePause, CirclePlay, type LucideIcon, RotateCcw, Scaling, Trash2 } from "lucide-react";
import type { Action } from "./permitted";

/** How the buttons and dialogs of the actions look. */
export const LOOKS: Readonly<Record<Action, { title: string; Icon: LucideIcon; isDangerous: boolean }>> = {
  scale: { title: "Scale", Icon: Scaling, isDangerous: false },
  pause: { title: "Pause", Icon: CirclePause, isDangerous: false },
  resume: { title: "Resume", Icon: CirclePlay, isDangerous: false },
  cancel: { title: "Cancel", Icon: Ban, isDangerous: true },
  retry: { title: "Retry", Icon: RotateCcw, isDangerous: false },
  delete: { title: "Delete", Icon: Trash2, isDangerous: true },
};
