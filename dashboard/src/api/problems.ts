import type { FieldError, Problem } from "./types";

/** An error answer of the gateway (RFC 9457). `status` is 0 if no answer arrived. */
export class ApiError extends Error {
  override readonly name = "ApiError";

  constructor(
    readonly status: number,
    readonly code: string,
    detail: string,
    readonly errors: readonly FieldError[] = [],
    /** Seconds after which the request may succeed; null if the answer does not say. */
    readonly retryAfter: number | null = null,
  ) {
    super(detail);
  }

  /** Whether the request can succeed later without a change. */
  get isTemporary(): boolean {
    return this.status === 0 || this.status === 429 || this.status >= 500;
  }
}

/** Read the problem of an error answer. A proxy in between may answer with another body. */
export async function errorOf(response: Response): Promise<ApiError> {
  const body = await response.text().catch(() => "");
  const after = Number(response.headers.get("Retry-After"));
  const retryAfter = Number.isFinite(after) && after > 0 ? after : null;
  const problem = parsed(body);
  if (problem !== null) {
    return new ApiError(response.status, problem.code, problem.detail, problem.errors ?? [], retryAfter);
  }
  return new ApiError(
    response.status,
    "UnexpectedAnswer",
    `the answer has the status ${response.status}`,
    [],
    retryAfter,
  );
}

/** The error for a request that got no answer. */
export function noAnswer(cause: unknown): ApiError {
  const detail = cause instanceof Error ? cause.message : String(cause);
  return new ApiError(0, "NoAnswer", `the gateway does not answer: ${detail}`);
}

function parsed(body: string): Problem | null {
  try {
    const value: unknown = JSON.parse(body);
    const isProblem = typeof value === "object" && value !== null && "code" in value && "detail" in value;
    return isProblem ? (value as Problem) : null;
  } catch {
    return null;
  }
}
