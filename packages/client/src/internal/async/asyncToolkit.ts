/**
 * The tools of a client or a pool for a language model, with promises.
 */
import type { CallToolResult } from "@skein/protocol/CallTool"
import { quote } from "@skein/protocol/Text"
import type { Tool } from "@skein/protocol/Tool"
import * as Effect from "effect/Effect"
import { PoolError, ToolNotFound } from "../../PoolError.ts"
import { type ChooseOptions, chooseTools, type Summary, type Warned } from "../toolkit/choose.ts"
import type { ToolSource } from "../toolkit/source.ts"
import { toCallOptions } from "./asyncTask.ts"
import type { Abortable, AsyncCallOptions } from "./options.ts"
import type { PromiseRunner } from "./promiseRunner.ts"

/** The options of a toolkit: which tools it has. See `Toolkit.Options`. */
export type ToolkitOptions = Abortable<ChooseOptions>

/** A tool for a language model. */
export interface ToolkitTool<Server extends string | undefined = string> {
  /** The unique name, of 1 to 64 letters, digits, `_` and `-`: `<server>_<tool>` if that is one. See `Toolkit`. */
  readonly name: string
  readonly description: string | undefined
  /** The JSON Schema of the arguments, in the form that `schemas` selects. `tool` has that of the server. */
  readonly inputSchema: Tool["inputSchema"]
  /** The server that has the tool. `undefined` for the tools of a single client, which have their own names. */
  readonly server: Server
  /** The tool as the server sent it, with its own name, its title and its annotations. */
  readonly tool: Tool
}

/** The tools of the servers that are ready, for a language model. */
export interface AsyncToolkit<Server extends string | undefined = string> extends Summary {
  readonly tools: ReadonlyArray<ToolkitTool<Server>>
  /**
   * Calls a tool by its name in the toolkit. A result with `isError` is returned. Rejects with the `ClientError` of the
   * server, or with a `PoolError`: `ToolNotFound` for a name that is not in `tools`.
   *
   * @example
   * const { content, isError } = await toolkit.call("files_read", { path: "a.txt" }, { signal })
   */
  readonly call: (name: string, args?: object, options?: AsyncCallOptions) => Promise<CallToolResult>
}

/** Chooses the tools of a client or a pool. The servers of a pool have names. */
export const makeToolkit = <Server extends string | undefined>(
  runner: PromiseRunner,
  source: ToolSource,
  { signal, ...options }: ToolkitOptions = {},
  warned: Warned
): Promise<AsyncToolkit<Server>> =>
  runner.run(
    Effect.map(chooseTools(source, options, warned), ({ chosen, ...rest }): AsyncToolkit<Server> => {
      const remotes = new Map(chosen.map(({ name, remote }) => [name, remote]))
      const call = (name: string, args: object | undefined, options: AsyncCallOptions) =>
        Effect.suspend(() => {
          const remote = remotes.get(name)
          if (remote === undefined) {
            const message = `The toolkit has no tool named ${quote(name)}`
            return Effect.fail(new PoolError({ reason: new ToolNotFound({ message, tool: name }) }))
          }
          return Effect.flatMap(remote.client, ({ callTool }) =>
            callTool(
              remote.tool.name,
              args === undefined ? undefined : remote.restore(args),
              toCallOptions(runner, options)
            ))
        })
      return {
        ...rest,
        tools: chosen.map(({ description, inputSchema, name, remote: { server, tool } }) => ({
          name,
          description,
          inputSchema,
          server: server as Server,
          tool
        })),
        call: (name, args, options = {}) => runner.run(call(name, args, options), options.signal)
      }
    }),
    signal
  )
