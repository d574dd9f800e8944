/**
 * Counts the requests of a server that have ended, and remembers the last failures: most requests end at once, and no
 * snapshot contains them while they run.
 */
import * as McpError from "@skein/protocol/McpError"
import { clip } from "@skein/protocol/Text"
import type { FailureInfo, Options } from "@skein/runtime/Inspect"
import type { Answer, Exchange } from "@skein/runtime/RequestContext"
import { monotonicMillis, type RequestTally } from "@skein/runtime/RequestRunner"
import type * as Clock from "effect/Clock"
import { InputError } from "../../InputError.ts"
import { resultOf } from "../base/outcome.ts"
import { failureOf } from "../handlers/handlerError.ts"

// The failures that are remembered, and the most characters of their texts.
const maxFailures = 20
const maxChars = 256

/** The error of a request that an operator has interrupted, which is not counted as a failure. */
export const interruptedByOperator = new McpError.McpError({
  reason: "InternalError",
  message:
    "Interrupted: the request was interrupted by the operator of the server and may have run: check that before you send it again"
})

/** A failure, with the text of a tool's result. */
interface Failure extends FailureInfo {
  readonly text?: string
}

/** Whether a result or an error stands for a person who declined or dismissed a question, which is not a failure. */
const isRefusal = (made: object): boolean => {
  const failure = failureOf(made)
  return failure instanceof InputError && (failure.reason._tag === "Declined" || failure.reason._tag === "Cancelled")
}

export class Tally implements RequestTally {
  readonly #clock: Clock.Clock
  /** Oldest first. */
  readonly #failures: Array<Failure> = []
  requests = 0
  failures = 0

  constructor(clock: Clock.Clock) {
    this.#clock = clock
  }

  answered(request: Exchange, answer: Answer): void {
    this.requests++
    const result = resultOf(answer)
    const { content, isError } = result
    if (isError !== true || isRefusal(result)) return
    const [first] = Array.isArray(content) ? content : []
    this.#add(request, "the tool returned an error", typeof first?.text === "string" ? first.text : undefined)
  }

  failed(request: Exchange, error: McpError.McpError): void {
    this.requests++
    if (error === interruptedByOperator || isRefusal(error)) return
    const { code, message } = McpError.toErrorObject(error, request.caller.revision)
    this.#add(request, `${code} ${message}`)
  }

  #add({ caller, method, target }: Exchange, error: string, text?: string): void {
    this.failures++
    if (this.#failures.length >= maxFailures) this.#failures.shift()
    this.#failures.push({
      method,
      target: target && clip(target, maxChars),
      at: monotonicMillis(this.#clock),
      error: clip(error, maxChars),
      principal: caller.principal?.id,
      ...(text === undefined ? undefined : { text: clip(text, maxChars) })
    })
  }

  /** The last failures, newest first. The text of a tool's result is data of users, as params are. */
  last({ params }: Options): ReadonlyArray<FailureInfo> {
    return this.#failures.toReversed().map(({ text, ...failure }) =>
      params === true && text !== undefined ? { ...failure, error: text } : failure
    )
  }
}
