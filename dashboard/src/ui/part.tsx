import { Component, type ComponentType, type LazyExoticComponent, lazy, type ReactNode, Suspense } from "react";
import { Loading } from "./errors";
import { FailedPart, LoadError } from "./failed-part";

interface PartProps {
  /** What the part shows, such as `the view`. */
  what: string;
  /** A part that has failed is shown again when this value changes. */
  of?: string;
  children: ReactNode;
}

interface PartState {
  error: Error | null;
  of: string;
}

/**
 * A part of the page that is loaded when it is shown, and that may fail without the rest of the page.
 *
 * React removes everything up to the next error boundary when a component throws, so each view and dialog is a part.
 */
export class Part extends Component<PartProps, PartState> {
  override state: PartState = { error: null, of: "" };

  static getDerivedStateFromError(error: unknown): Partial<PartState> {
    return { error: error instanceof Error ? error : new Error(String(error)) };
  }

  static getDerivedStateFromProps({ of = "" }: PartProps, state: PartState): PartState | null {
    return of === state.of ? null : { error: null, of };
  }

  override render(): ReactNode {
    const { what, children } = this.props;
    if (this.state.error !== null) return <FailedPart what={what} error={this.state.error} />;
    return <Suspense fallback={<Loading what={what} />}>{children}</Suspense>;
  }
}

/** Return a component that is loaded when it is first shown, inside a `Part`. */
export function loadedLater<M, P>(
  load: () => Promise<M>,
  component: (module: M) => ComponentType<P>,
): LazyExoticComponent<ComponentType<P>> {
  return lazy(async () => {
    try {
      return { default: component(await load()) };
    } catch (cause) {
      throw new LoadError(cause);
    }
  });
}
