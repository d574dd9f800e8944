/**
 * The name of an entry that the command line does not give: that of the server, else that of its package or its program.
 */
import * as Client from "@skein/client/Client"
import { cut } from "@skein/protocol/Text"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { sanitize } from "../base/format.ts"
import { existing, type Place } from "../base/nodeFiles.ts"
import { projectName, readManifest } from "../base/nodeProject.ts"
import { type Console, version } from "../base/process.ts"
import { commandOf, type Target } from "../connection/connection.ts"
import type { InstalledServer } from "./hosts.ts"

type InstalledCommand = Extract<InstalledServer, { readonly _tag: "Command" }>

/** Words that start another program: the name of the server is in a word after them. */
const launchers = new Set(["node", "npx", "npm", "bunx", "bun", "deno", "python", "python3", "uv", "uvx", "docker"])
const verbs = new Set(["run", "exec", "x", "tool", "dlx"])

/** A name for an entry: of letters, digits, hyphens and underscores, which all hosts take. */
const nameFrom = (text: string): string => cut(text.replace(/[^A-Za-z0-9_-]+/g, "-").replace(/^-+|-+$/g, ""), 64)

/** The name of a program or a package, without its folder or scope, its version and its extension. */
const baseOf = (word: string): string =>
  word.replace(/^@[^/]+\//, "").split(/[\\/]/).at(-1)!.replace(/(.)@[^@]*$/, "$1").replace(/\.\w+$/, "")

/** The word of a command that names the program of the server, rather than one that starts it. */
const programOf = ({ args, command }: InstalledCommand): string =>
  [command, ...args].find((word) => !word.startsWith("-") && !launchers.has(baseOf(word)) && !verbs.has(word)) ??
    command

/** The name without a look at the computer: that of the program or its package, or of the host of a URL. */
export const defaultName = (server: InstalledServer): string =>
  (server._tag === "Url"
    ? nameFrom(new URL(server.url).hostname.replace(/^(www|mcp|api)\./, ""))
    : nameFrom(baseOf(programOf(server)))) || "server"

/** The name of a server or a package, without its namespace or scope. */
const withoutScope = (name: string): string => nameFrom(name.split("/").at(-1)!)

/** How long the server of a module may take to say its name. */
const startTimeout = "10 seconds"

/** The name that the server of a module gives itself. Fails with the reason if it does not start. */
const nameOfServer = Effect.fnUntraced(function*(
  target: Extract<Target, { readonly _tag: "Module" }>,
  exportName: string | undefined,
  env: InstalledCommand["env"]
) {
  const line = yield* commandOf(target, exportName)
  const { transport } = yield* Effect.promise(() => import("@skein/client/Stdio"))
  return yield* Client.make(transport({ ...line, env, stderr: "capture" }), { info: { name: "skein", version } }).pipe(
    Effect.timeoutOrElse({
      duration: startTimeout,
      orElse: () => Effect.fail({ message: `it has not started within ${startTimeout}` })
    }),
    Effect.mapBoth({ onFailure: ({ message }) => message, onSuccess: ({ server }) => server?.name }),
    Effect.scoped
  )
})

/** The name of an entry. The server of a module is started for it. */
export const entryName = (
  { exportName, target }: { readonly target: Target; readonly exportName?: string | undefined },
  server: InstalledServer,
  { folder }: Place,
  { warn }: Pick<Console, "warn">
): Effect.Effect<string> =>
  Effect.gen(function*() {
    if (target._tag === "Configured") return nameFrom(target.server ?? "") || defaultName(server)
    if (server._tag === "Url") return defaultName(server)
    if (target._tag === "Module") {
      const file = existing(folder, target.file) ?? target.file
      const named = yield* Effect.result(nameOfServer({ ...target, file }, exportName, server.env))
      const name = Result.isSuccess(named) ? withoutScope(named.success ?? "") : ""
      if (name !== "") return name
      if (Result.isFailure(named)) {
        warn(
          sanitize(
            `The server was started for its name, and failed. The entry has that of the package: ${named.failure}`
          )
        )
      }
      return withoutScope(projectName(file)) || "server"
    }
    // A file is often called main or server, in every project.
    const file = existing(folder, programOf(server))
    const isOfPackage = file !== undefined && readManifest(file) !== undefined
    return (isOfPackage ? withoutScope(projectName(file)) : "") || defaultName(server)
  })
