/**
 * Tools: functions that a model can call.
 */
import * as Core from "@skein/server/AsyncDefinition"
import { define, type Definition } from "../base/definition.ts"
import type { Icon, Meta, Tool, ToolAnnotations } from "../base/messages.ts"
import type { HandlerContext } from "./handlerContext.ts"
import type { Caller, Visible } from "./request.ts"
import type { AnySchema, CheckedSchema, ReadBy, WrittenBy } from "./schema.ts"
import type { ToolAnswer } from "./toolAnswer.ts"
import type { ToolMistake } from "./toolMistake.ts"

/**
 * The description of a tool. Clients receive its schemas as JSON Schema 2020-12, which is the dialect if `$schema` is
 * absent.
 */
export interface ToolOptions<Input extends AnySchema = {}, Output extends AnySchema = never> {
  /** A name for people. */
  readonly title?: string | undefined
  /** The purpose of the tool, for the model. */
  readonly description?: string | undefined
  /**
   * The arguments: the schema of an object, such as `z.object({ … })`, or `jsonSchema({ … })`. Without it the tool has no
   * arguments. More than 100,000 values, nested ones included, are refused before a schema of another library validates them.
   *
   * Clients of 2026-07-28 copy a field with the annotation `"x-mcp-header": "Region"` into the HTTP header
   * `Mcp-Param-Region`. Such a field must be a string, an integer or a boolean, nested in objects only.
   */
  readonly input?: Input | undefined
  /**
   * The structured content of the result. Without it the tool returns content only. Before 2026-07-28 it must describe an
   * object: clients of those revisions receive the JSON of other values as text.
   */
  readonly output?: Output | undefined
  /** Hints about the behavior of the tool. Clients must not trust them. */
  readonly annotations?: ToolAnnotations | undefined
  /** Whether a call may, must or must not become a task. Leave it out unless the server uses `tasks()` of `skein/tasks`. */
  readonly execution?: { readonly taskSupport?: "forbidden" | "optional" | "required" } | undefined
  /** Which callers may see and call the tool. All callers by default. */
  readonly visible?: Visible | undefined
  /**
   * Changes the tool as `tools/list` returns it to a caller. It runs for each list, must be fast, and must not change the name
   * or the schemas.
   */
  readonly listedAs?: ((tool: Tool, caller: Caller) => Tool) | undefined
  /** Labels by which the author of a server selects tools. Clients do not receive them. */
  readonly tags?: ReadonlyArray<string> | undefined
  readonly icons?: ReadonlyArray<Icon> | undefined
  /** The version of the tool, such as `2.1` or `2026-01-31`, which clients receive in `_meta`. See `toolVersions`. */
  readonly version?: string | undefined
  readonly _meta?: Meta | undefined
}

/** Makes a mistake in the schemas of a tool a type error that names it. */
export interface CheckedSchemas<Input, Output> {
  readonly input?: CheckedSchema<Input, "input"> | undefined
  readonly output?: ([Output] extends [never] ? unknown : CheckedSchema<Output, "output">) | undefined
  // The names of other libraries.
  readonly inputSchema?: "It is named `input` here"
  readonly outputSchema?: "It is named `output` here"
  readonly parameters?: "It is named `input` here"
}

/** The handler of a tool. */
export type ToolHandler<Input extends AnySchema, Output extends AnySchema, A> = (
  input: ReadBy<Input>,
  context: HandlerContext
) =>
  | ToolAnswer<NoInfer<WrittenBy<Output>>>
  | Promise<ToolAnswer<NoInfer<WrittenBy<Output>>>>
  | (ToolMistake<A, WrittenBy<Output>> & A)

const usage = "A tool needs a name, options and a handler: tool(\"name\", { input }, async ({ … }) => …)"

/**
 * Makes a tool for `use` and `add` of an `AsyncServer`, and for `mount`. The name should be 1 to 128 characters of
 * `A-Z a-z 0-9 _ - .`.
 *
 * Arguments that do not match the input schema never reach the handler: the model receives the message of the validation.
 *
 * @example
 * const add = tool("add", { input: z.object({ a: z.number(), b: z.number() }) }, ({ a, b }) => a + b)
 */
export function tool<Input extends AnySchema = {}, Output extends AnySchema = never, A = never>(
  name: string,
  options: ToolOptions<Input, Output> & CheckedSchemas<Input, Output>,
  handler: ToolHandler<Input, Output, A>
): Definition
/** One object is the form of another library. */
export function tool(
  definition: "A tool needs a name, options and a handler: tool(\"name\", { input }, async ({ … }) => …)"
): Definition
/** @deprecated Pass the options, too. */
export function tool(
  name: string,
  options: "A tool needs options before its handler: tool(\"name\", {}, async () => …)"
): Definition
export function tool(...given: ReadonlyArray<unknown>): Definition {
  const [name, options, handler] = given as [string, {}, () => string]
  if (typeof name !== "string" || typeof handler !== "function") throw new TypeError(usage)
  return define(Core.tool(name, options, handler))
}
