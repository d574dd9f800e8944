/**
 * Validates the result of a tool against its `outputSchema`: "Clients SHOULD validate structured results against this
 * schema" (2025-06-18 and later, tools, output schema). The schema may be hostile: it is compiled and applied within
 * bounds.
 */
import type { CallToolResult } from "@skein/protocol/CallTool"
import * as Nesting from "@skein/protocol/Nesting"
import { clip, quote } from "@skein/protocol/Text"
import type * as SchemaValidation from "@skein/protocol/SchemaValidation"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import { ClientError, InvalidResponse } from "../../ClientError.ts"
import type { Configured } from "../connection/clientOptions.ts"

/** The compiled schema; without a validation if the schema cannot be used. */
interface Compiled {
  readonly text: string
  readonly validation: SchemaValidation.Validation | undefined
}

/** The bounds for compiling schemas, and the logger for those that cannot be used. */
export interface Compiling {
  readonly limits: SchemaValidation.Options
  readonly client: Configured
}

// The validator is loaded with the first result to validate: many clients never need it.
const load = Effect.tryPromise(() => import("@skein/protocol/SchemaValidation"))

// Compiling a schema that is nested too deeply returns the problem.
const textOf = Nesting.refusing((schema: unknown) => JSON.stringify(schema), () => "")

// More keys do not fit into a message.
const maxKeys = 64

const problemText = ({ message, path }: SchemaValidation.Problem): string => {
  // Each key is shortened: together they may be as long as the value.
  const at = path.slice(0, maxKeys).map((key) => typeof key === "string" ? quote(key) : key).join("][")
  return path.length === 0 ? message : `${message} at [${clip(at)}]`
}

/** Why a schema is not stored. */
export class Unkept extends Data.Class<{ readonly why: string }> {}

/** Validates the results of one tool. The schema is compiled once, with the first result. */
export class OutputCheck {
  readonly #name: string
  readonly #schema: unknown
  readonly #compiling: Compiling
  #compiled: Compiled | undefined
  /** Whether the schema was compiled from the previous definition, which usually is the same. */
  #inherited: boolean
  /** Whether a result without structured content was logged. */
  #isMissingLogged: boolean

  constructor(name: string, schema: unknown, compiling: Compiling, before: OutputCheck | undefined) {
    this.#name = name
    this.#schema = schema
    this.#compiling = compiling
    this.#compiled = before === undefined ? undefined : before.#compiled
    this.#inherited = true
    this.#isMissingLogged = before !== undefined && before.#isMissingLogged
  }

  /** Returns the result, or fails with the problems. */
  run(result: CallToolResult): Effect.Effect<CallToolResult, ClientError> {
    return this.#compiled === undefined || this.#inherited
      ? Effect.flatMap(this.#compile, ({ validation }) => this.#check(validation, result))
      : this.#check(this.#compiled.validation, result)
  }

  get #compile(): Effect.Effect<Compiled> {
    return Effect.suspend(() => {
      const schema = this.#schema
      const text = schema instanceof Unkept ? schema.why : textOf(schema)
      if (this.#compiled?.text === text) return Effect.succeed(this.#keep(this.#compiled))
      if (schema instanceof Unkept) return Effect.succeed(this.#unchecked(text, schema.why))
      const compiled = Effect.flatMap(load, ({ compileEffect }) => compileEffect(schema, this.#compiling.limits))
      return Effect.match(compiled, {
        onSuccess: (validation) => this.#keep({ text, validation }),
        onFailure: ({ message }) => this.#unchecked(text, message)
      })
    })
  }

  #keep(compiled: Compiled): Compiled {
    this.#compiled = compiled
    this.#inherited = false
    return compiled
  }

  #unchecked(text: string, why: string): Compiled {
    const tool = quote(this.#name)
    this.#compiling.client.warn(
      `Results of the tool ${tool} are not validated, since its outputSchema cannot be used: ${why}`
    )
    return this.#keep({ text, validation: undefined })
  }

  /** "Servers MUST provide structured results that conform to this schema." */
  #check(
    validation: SchemaValidation.Validation | undefined,
    result: CallToolResult
  ): Effect.Effect<CallToolResult, ClientError> {
    if (validation === undefined) return Effect.succeed(result)
    const { structuredContent } = result
    if (structuredContent === undefined) return this.#missing(result)
    const problems = validation.start(structuredContent)
    return Effect.isEffect(problems)
      ? Effect.flatMap(problems, (problems) => this.#settle(result, problems))
      : this.#settle(result, problems)
  }

  /** Many servers declare an `outputSchema` and return text in some cases, which the caller can use. */
  #missing(result: CallToolResult): Effect.Effect<CallToolResult, ClientError> {
    const message = "returned no structured content, although it has an outputSchema"
    const { client } = this.#compiling
    if (client.options.requireStructuredContent === true) return this.#refuse(message, result, [])
    if (!this.#isMissingLogged) client.warn(`The tool ${quote(this.#name)} ${message}`)
    this.#isMissingLogged = true
    return Effect.succeed(result)
  }

  #settle(
    result: CallToolResult,
    problems: ReadonlyArray<SchemaValidation.Problem>
  ): Effect.Effect<CallToolResult, ClientError> {
    return problems.length === 0
      ? Effect.succeed(result)
      : this.#refuse(
        `returned structured content that does not match its outputSchema: ${problems.map(problemText).join("; ")}`,
        result,
        problems
      )
  }

  #refuse(message: string, result: CallToolResult, problems: ReadonlyArray<SchemaValidation.Problem>) {
    const reason = new InvalidResponse({ message: `The tool ${quote(this.#name)} ${message}`, result, problems })
    return Effect.fail(new ClientError({ reason, method: "tools/call" }))
  }
}
