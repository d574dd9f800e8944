/**
 * The server programs under test, built in three forms: as plain JavaScript that imports its packages from
 * `node_modules`, as one bundled file, and as the file of `skein build`, which enables Node's compile cache. Types are
 * stripped beforehand, so that no start includes it.
 */
import { execFileSync } from "node:child_process"
import { build } from "esbuild"
import { existsSync, readdirSync, statSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { join } from "node:path"
import { bundle } from "../../scripts/bundle.ts"
import type { Era } from "./messages.ts"

export interface Peer {
  readonly name: string
  readonly label: string
  readonly eras: ReadonlyArray<Era>
  /** The name of the program, if it is not the name of the peer. */
  readonly program?: string
  readonly args?: ReadonlyArray<string>
}

/** All peers, the reference first. */
export const all: ReadonlyArray<Peer> = [
  { name: "bare", label: "bare Node", eras: ["session", "request"] },
  {
    name: "bare-joined",
    label: "bare Node, joined writes",
    eras: ["session", "request"],
    program: "bare",
    args: ["--join"]
  },
  // Only its start time is measured.
  { name: "effect", label: "Effect and its Schema, imported", eras: [] },
  { name: "skein", label: "Skein", eras: ["session", "request"] },
  { name: "sdk-v1", label: "SDK v1 1.32.2", eras: ["session"] },
  { name: "sdk-v2", label: "SDK v2 2.4.0", eras: ["session", "request"] },
  { name: "effect-ai", label: "effect/ai 4.1, toolkit", eras: ["session", "request"] },
  { name: "effect-ai-raw", label: "effect/ai 4.1, unchecked", eras: ["session", "request"] }
]

/** The form of a program. */
export type Form = "node_modules" | "bundled" | "skein build"

const here = fileURLToPath(new URL(".", import.meta.url))
const out = join(here, "..", "dist", "stdio")

/** The built command line. */
const skein = join(here, "..", "..", "packages", "cli", "dist", "bin", "skein.js")

/** The name of the file of a program: `sdk-v1` is in `sdkV1.ts`. */
export const programName = (name: string): string =>
  name.replaceAll(/-(\w)/g, (_, letter: string) => letter.toUpperCase())

const programOf = (peer: Peer): string => programName(peer.program ?? peer.name)

/** The built file of a peer. */
export const fileOf = (peer: Peer, form: Form): string =>
  join(out, form, `${programOf(peer)}.${form === "skein build" ? "cjs" : "mjs"}`)

/**
 * Builds all peers in each form. With `node_modules` and with `skein build`, Skein is used from the built `dist` of its
 * packages, as an installed package would be. The bundled file is the output of `npm run bundle`, for each peer.
 */
export const prepare = async (peers: ReadonlyArray<Peer>): Promise<void> => {
  const entryOf = (peer: Peer) => join(here, "peers", `${programOf(peer)}.ts`)
  const programs = peers.filter((peer) => peer.program === undefined)
  await build({
    entryPoints: programs.map(entryOf),
    outdir: join(out, "node_modules"),
    platform: "node",
    format: "esm",
    target: "node22",
    logLevel: "warning",
    outExtension: { ".js": ".mjs" }
  })
  for (const peer of programs) await bundle({ entry: entryOf(peer), outfile: fileOf(peer, "bundled") })
  if (!existsSync(skein)) return
  for (const peer of programs) {
    const words = [skein, "build", fileOf(peer, "node_modules"), "--out", fileOf(peer, "skein build")]
    execFileSync(process.execPath, words, { stdio: ["ignore", "ignore", "inherit"] })
  }
}

/** Whether the programs are built in this form: `skein build` needs the built packages. */
export const isBuilt = (form: Form): boolean => form !== "skein build" || existsSync(skein)

const newest = (folder: string, ending: string): number =>
  existsSync(folder)
    ? Math.max(
      0,
      ...readdirSync(folder, { recursive: true, encoding: "utf8" })
        .filter((file) => file.endsWith(ending))
        .map((file) => statSync(join(folder, file)).mtimeMs)
    )
    : 0

/** Reports if the built `dist` is missing or older than the sources. */
export const buildProblem = (
  module = "Stdio.js",
  role: "client" | "server" = "server"
): { readonly missing: boolean; readonly message: string } | undefined => {
  const packages = join(here, "..", "..", "packages")
  if (!existsSync(join(packages, role, "dist", module))) {
    return { missing: true, message: "Skein is not built and is left out. Run `npm run build` first." }
  }
  const stale = ["protocol", "runtime", role].filter((name) =>
    newest(join(packages, name, "src"), ".ts") > newest(join(packages, name, "dist"), ".js")
  )
  return stale.length === 0
    ? undefined
    : {
      missing: false,
      message: `The build of these packages is older than their sources: ${
        stale.join(", ")
      }. Run \`npm run build\` first.`
    }
}
