/**
 * Chooses the tools of a toolkit: lists the servers, selects tools within the bounds, and names them.
 */
import type { Tool } from "@skein/protocol/Tool"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { ClientError } from "../../ClientError.ts"
import type { Callable, Remote } from "./handler.ts"
import { plain, type ToolName, uniqueNames } from "./names.ts"
import type { Form } from "./providerRules.ts"
import { fitSchema, type Fitted } from "./providerSchemas.ts"
import { estimateTokens, instructionsText, isForModel, type Omitted, select, type ShownTool } from "./selection.ts"
import { listAll, type ToolSource } from "./source.ts"

/** The options that choose the tools of a toolkit. */
export interface ChooseOptions {
  /**
   * Selects the servers of a pool or of a record by name: all by default. The others are neither waited for nor asked
   * for their tools.
   */
  readonly servers?: ((server: string) => boolean) | undefined
  /**
   * Selects the tools: all by default. The server is `undefined` for the tools of a single client. Tools that are for the
   * page of an MCP App only (`_meta.ui.visibility` without `"model"`) are never selected.
   */
  readonly include?: ((server: string | undefined, tool: Tool) => boolean) | undefined
  /**
   * Changes the name and the description that the model receives. A name is made valid and unique like all names. Calls
   * are not affected. By default nothing is changed.
   *
   * @example
   * override: (server, { name }) => name === "q" ? { name: "search_notes", description: "Searches my notes" } : {}
   */
  readonly override?: ((server: string | undefined, tool: Tool) => Override | undefined) | undefined
  /**
   * How many tools the toolkit has at most: 512 by default. Some providers accept at most 128 tools. The servers take
   * turns to add a tool, each in the order of its list, until the bound is reached, so that no server displaces the
   * others. The remaining tools are left out, listed in `omitted`, and logged when their number changes.
   */
  readonly maxTools?: number | undefined
  /**
   * How many tokens the names, descriptions and schemas of all tools may have together: 100,000 by default. Lower it for
   * models with a small context. A tool with more tokens than are left, in the order of `maxTools`, is left out, logged,
   * and listed in `omitted`. Smaller tools after it may still be added.
   */
  readonly maxTokens?: number | undefined
  /**
   * The form of the schemas that the model receives: `all` by default, which every provider accepts. Choose the form of
   * your provider, which changes less, or `none` for the schemas of the servers. The description of a tool says what its
   * schema no longer says, and names of properties that a provider refuses are replaced; the arguments of a call have the
   * names of the server again. The server checks all arguments exactly. See {@link SchemaForm}.
   */
  readonly schemas?: Form | undefined
  /**
   * Counts the tokens of a tool for `maxTokens`: {@link estimateTokens} by default, which counts one token for
   * every four bytes of JSON. Use the tokenizer of your model for exact numbers.
   */
  readonly countTokens?: ((tool: ShownTool) => number) | undefined
  /**
   * How long a server of a pool may take to be opened for the first time, and then to list its tools, before toolkits
   * do not wait for it: 2 seconds by default. The time is counted from the beginning of the opening, so that a hanging
   * server delays only the first toolkits. A program that makes one toolkit at its start needs a longer time.
   */
  readonly readyTimeout?: Duration.Input | undefined
}

/** The name and the description of a tool in place of the server's own. */
export interface Override {
  readonly name?: string | undefined
  readonly description?: string | undefined
}

/** A tool with the name and the description that the model receives. */
export interface Chosen {
  readonly name: string
  readonly description: string | undefined
  /** The schema that the model receives. */
  readonly inputSchema: Tool["inputSchema"]
  readonly remote: Callable
}

/** The members of a toolkit beside its tools. */
export interface Summary {
  /** The tools that were left out because of `maxTools` or `maxTokens`. */
  readonly omitted: ReadonlyArray<Omitted>
  /** The servers whose tools could not be listed, with their errors. */
  readonly missing: ReadonlyArray<{ readonly server: string; readonly error: ClientError }>
  /** The servers of a pool that are not ready yet. */
  readonly pending: ReadonlyArray<string>
  /** How many tokens the tools have together, as `countTokens` counts them. */
  readonly tokens: number
  /**
   * The instructions of the servers, for the system prompt of the model: empty without any. They are untrusted text of
   * the servers.
   */
  readonly instructions: string
}

/** The tools of a toolkit, and everything that is not in it. */
export interface Choice extends Summary {
  readonly chosen: ReadonlyArray<Chosen>
}

/** The warning that the previous choice for a toolkit has logged. */
export interface Warned {
  about: string
}

/** Fails only when the tools of a single client cannot be listed. */
export const chooseTools = Effect.fnUntraced(function*(
  source: ToolSource,
  options: ChooseOptions,
  warned: Warned
): Effect.fn.Return<Choice, ClientError> {
  const { countTokens = estimateTokens, maxTokens = 100_000, maxTools = 512 } = options
  const { readyTimeout = "2 seconds", schemas = "all" } = options
  const listed = yield* listAll(source, options.servers, readyTimeout)
  const missing: Array<{ readonly server: string; readonly error: ClientError }> = []
  const pending: Array<string> = []
  const all: Array<Remote> = []
  for (const { client, server, tools } of listed) {
    if (tools === undefined) pending.push(server!)
    else if (Result.isFailure(tools)) {
      if (server === undefined) return yield* tools.failure
      missing.push({ server, error: tools.failure })
    } else {
      for (const tool of tools.success) {
        if (isForModel(tool) && (options.include?.(server, tool) ?? true)) all.push({ server, tool, client })
      }
    }
  }
  const overrides = new Map(all.map((remote) => [remote, options.override?.(remote.server, remote.tool)]))
  const named = (remote: Remote): ToolName => ({
    server: remote.server,
    tool: remote.tool.name,
    name: overrides.get(remote)?.name
  })
  const fittedOf = ({ tool }: Remote): Fitted => fitSchema(tool.inputSchema, schemas)
  const described = (remote: Remote) =>
    fittedOf(remote).describe(overrides.get(remote)?.description ?? remote.tool.description)
  const tokensOf = (remote: Remote) =>
    countTokens({
      name: plain(named(remote)),
      description: described(remote),
      inputSchema: fittedOf(remote).schema
    })
  const { omitted, selected, tokens } = select(all, maxTools, maxTokens, tokensOf)
  const bounds = Array.from(new Set(omitted.map(({ bound }) => bound))).join(", ")
  const before = warned.about
  warned.about = omitted.length === 0
    ? ""
    : `${omitted.length} of ${all.length} tools were left out of a toolkit (${bounds})`
  // Each generation runs the effect: the same warning is not repeated.
  if (warned.about !== "" && warned.about !== before) yield* Effect.logWarning(warned.about)
  const names = uniqueNames(selected.map(named))
  const used = new Set(selected.map(({ server }) => server))
  return {
    chosen: selected.map((remote, at) => {
      const { restore, schema } = fittedOf(remote)
      return {
        name: names[at]!,
        description: described(remote),
        inputSchema: schema,
        remote: { ...remote, restore }
      }
    }),
    omitted,
    missing,
    pending,
    tokens,
    instructions: instructionsText(listed.filter(({ server }) => used.has(server)))
  }
})
