/**
 * The definitions of tools that the server has listed: the parameters that are repeated in headers, the output schema,
 * and whether a call is repeatable and may be a task.
 */
import type { CallToolResult } from "@skein/protocol/CallTool"
import type { JsonObject } from "@skein/protocol/JsonRpc"
import * as Nesting from "@skein/protocol/Nesting"
import { quote } from "@skein/protocol/Text"
import type { ListToolsResult, Tool, ToolAnnotations, ToolExecution } from "@skein/protocol/Tool"
import * as XMcpHeader from "@skein/protocol/XMcpHeader"
import type { Headers } from "@skein/runtime/Connection"
import type * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { type ClientError, Unsupported } from "../../ClientError.ts"
import type { NegotiatedConnection } from "../connection/connection.ts"
import { clientError } from "../base/errors.ts"
import { type Configured, limitOf } from "../connection/clientOptions.ts"
import { type Compiling, OutputCheck, Unkept } from "./outputSchema.ts"

/** The definition of one tool. */
interface Known {
  /** The parameters that are repeated in headers, or the rule that they break. Then the tool must not be used. */
  readonly mirrored: ReadonlyArray<XMcpHeader.Param> | string
  readonly repeatable: boolean
  readonly taskSupport: TaskSupport
  readonly output: OutputCheck | undefined
  /** How much of `maxOutputSchemaChars` its schema uses. */
  readonly size: number
}

/** Whether a call of a tool may be a task, must be one, or must not. */
export type TaskSupport = NonNullable<ToolExecution["taskSupport"]>

// `SchemaValidation` refuses longer ones. It is not loaded at this point, hence the copy of its default.
const maxSchema = 262_144

const none: ReadonlyArray<XMcpHeader.Param> = []

const unchecked = [undefined, 0] as const

/**
 * Whether the annotations of a tool declare that a second call has no further effect. "Clients MUST consider tool
 * annotations to be untrusted": they only decide whether the same server receives the same request twice.
 */
const isRepeatable = (annotations: ToolAnnotations | undefined): boolean =>
  annotations !== undefined && annotations.destructiveHint !== true &&
  (annotations.readOnlyHint === true || annotations.idempotentHint === true)

/** The headers of a request that repeats none of its parameters. */
export const noHeaders: Result.Result<Headers | undefined, ClientError> = Result.succeed(undefined)

/** Whether tool calls on a connection repeat parameters in HTTP headers. */
export const mirrors = ({ isStateless, sendsHeaders }: NegotiatedConnection): boolean => isStateless && sendsHeaders

/**
 * Whether the revision has structured content and output schemas. Servers also send them in older revisions; there a
 * tool with a schema may return a result without structured content.
 */
const hasStructured = ({ revision }: NegotiatedConnection): boolean => revision >= "2025-06-18"

/**
 * The definitions of tools that the server has listed. Its maps are created when they are first needed: most clients
 * list no tools, or call none.
 */
export class ToolCatalog {
  readonly #client: Configured
  #tools: Map<string, Known> | undefined = undefined
  #outdated: Set<string> | undefined = undefined
  #doubted: Set<string> | undefined = undefined
  // The size of all schemas.
  #size = 0
  /** How many times the definitions were discarded. */
  generation = 0

  constructor(client: Configured) {
    this.#client = client
  }

  get #maxTools(): number {
    return limitOf(this.#client.options, "maxItems")
  }

  /** Stores the tools of a page. Returns the page without the tools that must not be used on this connection. */
  read(connection: NegotiatedConnection, page: ListToolsResult): ListToolsResult {
    const given = this.#client.options.validateOutput
    const compiling = { limits: typeof given === "object" ? given : {}, client: this.#client }
    const usable = page.tools.filter((tool) => this.#remember(connection, tool, compiling))
    return usable.length === page.tools.length ? page : { ...page, tools: usable }
  }

  /** The headers that repeat arguments of a call, given its encoded parameters; undefined if it has none. */
  headers(params: JsonObject): Result.Result<Headers | undefined, ClientError> {
    const mirrored = this.#tools?.get(params["name"] as string)?.mirrored
    if (mirrored === undefined || mirrored.length === 0 || typeof mirrored === "string") {
      return noHeaders
    }
    return Result.mapError(
      XMcpHeader.encode(mirrored, params["arguments"]),
      (problem) => clientError(Unsupported, `tools/call cannot be sent: ${problem}`, "tools/call")
    )
  }

  /** Whether the headers of this tool were known, but may have changed since. */
  outdated(name: string): boolean {
    return this.#outdated?.has(name) === true
  }

  /** All tools were listed again: tools that are still outdated no longer exist. */
  relisted(): void {
    this.#outdated = undefined
  }

  /** Validates the structured content of a result; undefined if the tool has no known `outputSchema`. */
  check(
    connection: NegotiatedConnection,
    name: string,
    result: CallToolResult
  ): Effect.Effect<CallToolResult, ClientError> | undefined {
    return result.isError === true || (!hasStructured(connection) && result.structuredContent === undefined)
      ? undefined
      : this.#tools?.get(name)?.output?.run(result)
  }

  /**
   * Whether to list the tools again because a result does not match the definition. True once per tool until `forget`.
   */
  doubt(name: string): boolean {
    const doubted = this.#doubted ??= new Set()
    if (doubted.has(name)) return false
    doubted.add(name)
    this.#bound(doubted)
    return true
  }

  /** Whether a tool is known to be repeatable. */
  repeatable(name: string): boolean {
    return this.#tools?.get(name)?.repeatable === true
  }

  /** The task support with which a tool was listed; `undefined` if it was not listed. */
  taskSupport(name: string): TaskSupport | undefined {
    return this.#tools?.get(name)?.taskSupport
  }

  /** Discards all definitions: the list has changed, or belongs to another server process. */
  forget(): void {
    for (const [name, { mirrored }] of this.#tools ?? []) {
      if (typeof mirrored === "string" || mirrored.length === 0) continue
      this.#bound((this.#outdated ??= new Set()).add(name))
    }
    this.#tools = undefined
    this.#size = 0
    this.#doubted = undefined
    this.generation++
  }

  #remember(connection: NegotiatedConnection, tool: Tool, compiling: Compiling): boolean {
    const { name } = tool
    const tools = this.#tools ??= new Map()
    const before = tools.get(name)
    const mirrored = mirrors(connection) ? Result.merge(XMcpHeader.fromSchema(tool.inputSchema)) : none
    if (typeof mirrored === "string" && before?.mirrored !== mirrored) {
      this.#client.warn(`The tool ${quote(name)} is left out: ${mirrored}`)
    }
    this.#release(name)
    const isChecked = this.#client.options.validateOutput !== false && tool.outputSchema !== undefined
    const [schema, size] = isChecked ? this.#kept(tool.outputSchema, compiling) : unchecked
    this.#size += size
    const output = isChecked ? new OutputCheck(name, schema, compiling, before?.output) : undefined
    const taskSupport = tool.execution?.taskSupport ?? "forbidden"
    tools.set(name, { mirrored, repeatable: isRepeatable(tool.annotations), taskSupport, output, size })
    if (tools.size > this.#maxTools) this.#release(tools.keys().next().value!)
    this.#outdated?.delete(name)
    return typeof mirrored !== "string"
  }

  /**
   * The schema to store, with its size. A schema that would not be applied, or that exceeds the bound of all schemas,
   * is replaced by the reason.
   */
  #kept(schema: unknown, { limits: { maxSchemaChars = maxSchema } }: Compiling): readonly [unknown, size: number] {
    const most = this.#client.bounds.maxOutputSchemaChars
    const room = most - this.#size
    const size = Nesting.sizeUpTo(schema, Math.min(maxSchemaChars, room))
    if (size > maxSchemaChars) {
      return [new Unkept({ why: `The schema has more than ${maxSchemaChars} characters (maxSchemaChars)` }), 0]
    }
    if (size <= room) return [schema, size]
    return [new Unkept({ why: `The schemas of all tools have more than ${most} characters` }), 0]
  }

  #release(name: string): void {
    this.#size -= this.#tools?.get(name)?.size ?? 0
    this.#tools?.delete(name)
  }

  #bound(kept: Set<string>): void {
    if (kept.size <= this.#maxTools) return
    const [oldest] = kept.keys()
    kept.delete(oldest!)
  }
}
