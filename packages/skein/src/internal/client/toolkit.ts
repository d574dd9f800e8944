/**
 * The tools of servers in the form that the SDKs of model providers take.
 */
import * as CoreSelection from "@skein/client/Toolkit"
import type { CallToolResult, Tool } from "../base/messages.ts"
import type { Duration } from "../base/types.ts"
import type { Abortable, CallToolOptions } from "./calls.ts"
import type { ClientError } from "./errors.ts"

/**
 * The form of the schemas that a model receives. Each changes what its provider refuses: `all` (what all of them accept),
 * `anthropic`, `bedrock`, `gemini` (`FunctionDeclaration.parameters`), `openai` (functions that are not strict), or `none`.
 */
export type SchemaForm = "all" | "anthropic" | "bedrock" | "gemini" | "openai" | "none"

/** The name and the description of a tool in place of the server's own. */
export interface ToolOverride {
  readonly name?: string | undefined
  readonly description?: string | undefined
}

/** The parts of a tool that a model receives. */
export interface ShownTool {
  readonly name: string
  readonly description: string | undefined
  readonly inputSchema: Tool["inputSchema"]
}

/** The options of a toolkit: which tools it has, and in which form. */
export interface ToolkitOptions extends Abortable {
  /** Selects the servers of a pool by name: all by default. The others are neither waited for nor asked. */
  readonly servers?: ((server: string) => boolean) | undefined
  /** Selects the tools: all by default. The server is `undefined` for the tools of a single client. */
  readonly include?: ((server: string | undefined, tool: Tool) => boolean) | undefined
  /**
   * Changes the name and the description that the model receives. A name is made valid and unique like all names.
   *
   * @example
   * override: (server, { name }) => name === "q" ? { name: "search_notes", description: "Searches my notes" } : {}
   */
  readonly override?: ((server: string | undefined, tool: Tool) => ToolOverride | undefined) | undefined
  /** How many tools the toolkit has at most: 512 by default. Some providers accept at most 128. The rest is in `omitted`. */
  readonly maxTools?: number | undefined
  /** How many tokens all tools may have together: 100,000 by default. The rest is in `omitted`. */
  readonly maxTokens?: number | undefined
  /** The form of the schemas: `all` by default. Choose that of your provider, which changes less. */
  readonly schemas?: SchemaForm | undefined
  /** Counts the tokens of a tool: `estimateTokens` by default, one for every four bytes of JSON. */
  readonly countTokens?: ((tool: ShownTool) => number) | undefined
  /** How long the first opening of a server of a pool, and then its list, may take: 2 seconds by default. */
  readonly readyTimeout?: Duration | undefined
}

/** A tool for a language model. */
export interface ToolkitTool<Server extends string | undefined = string> {
  /** The unique name, of 1 to 64 letters, digits, `_` and `-`: `<server>_<tool>` in a pool, if that is one. */
  readonly name: string
  readonly description: string | undefined
  /** The JSON Schema of the arguments, in the form that `schemas` selects. `tool` has that of the server. */
  readonly inputSchema: Tool["inputSchema"]
  /** The server that has the tool. `undefined` for the tools of a single client. */
  readonly server: Server
  /** The tool as the server sent it. */
  readonly tool: Tool
}

/** A tool that was left out because of a bound. */
export interface OmittedTool {
  readonly server: string | undefined
  readonly tool: Tool
  /** The bound that it exceeds. */
  readonly bound: "maxTools" | "maxTokens"
  /** How many tokens it has. */
  readonly tokens: number
}

/** Tools for a language model. */
export interface AsyncToolkit<Server extends string | undefined = string> {
  readonly tools: ReadonlyArray<ToolkitTool<Server>>
  /**
   * Calls a tool by its name in the toolkit. A result with `isError` is returned. Rejects with the `ClientError` of the server,
   * or with a `PoolError`: `ToolNotFound` for a name that is not in `tools`.
   *
   * @example
   * const { content, isError } = await toolkit.call("files_read", { path: "a.txt" }, { signal })
   */
  readonly call: (name: string, args?: object, options?: CallToolOptions) => Promise<CallToolResult>
  /** The tools that were left out because of `maxTools` or `maxTokens`. */
  readonly omitted: ReadonlyArray<OmittedTool>
  /** The servers whose tools could not be listed, with their errors. */
  readonly missing: ReadonlyArray<{ readonly server: string; readonly error: ClientError }>
  /** The servers of a pool that are not ready yet. */
  readonly pending: ReadonlyArray<string>
  /** How many tokens the tools have together. */
  readonly tokens: number
  /** The instructions of the servers, for the system prompt: empty without any. They are untrusted text. */
  readonly instructions: string
}

/** A part of a schema that was changed because a provider refuses it. */
export interface SchemaChange {
  /** The place, as the model writes it: `items[].price`. Empty for the arguments as a whole. */
  readonly at: string
  /** The keyword, or another short name for the part that the provider refuses. */
  readonly refused: string
  /** The meaning that the schema has lost, in words for the model. `undefined` if the meaning is the same. */
  readonly weakened: string | undefined
}

/** A schema in the form of a provider. */
export interface FittedSchema {
  readonly schema: Tool["inputSchema"]
  /** The changes, at most 64. */
  readonly changes: ReadonlyArray<SchemaChange>
  /** How many changes are not in `changes`. */
  readonly more: number
  /** The description with a list of what was weakened. */
  readonly describe: (description: string | undefined) => string | undefined
  /** Replaces the names of properties that were changed by those of the server. */
  readonly restore: (args: object) => object
}

/**
 * Fits the input schema of a tool to a provider. Toolkits do it automatically: use it for tools that you list yourself.
 *
 * @example
 * const { describe, restore, schema } = fitSchema(tool.inputSchema, "gemini")
 */
export const fitSchema: (schema: Tool["inputSchema"], form: SchemaForm) => FittedSchema = CoreSelection
  .fitSchema as never

/** Estimates how many tokens a model needs for a tool: one for every four bytes of its JSON. */
export const estimateTokens: (tool: ShownTool) => number = CoreSelection.estimateTokens as never
