/**
 * The programs under test, made ready to run: as plain JavaScript that finds its packages in `node_modules`, and as one
 * bundled file. Types are stripped beforehand, so that nobody's start pays for it.
 */
import { build } from "esbuild"
import { existsSync, readdirSync, statSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { join } from "node:path"
import { bundle } from "../../scripts/bundle.ts"
import type { Era } from "./wire.ts"

export interface Peer {
  readonly name: string
  readonly label: string
  readonly eras: ReadonlyArray<Era>
  /** The program, where its name is not the peer's. */
  readonly program?: string
  readonly args?: ReadonlyArray<string>
}

/** All of them, the yardstick first. */
export const all: ReadonlyArray<Peer> = [
  { name: "bare", label: "bare Node", eras: ["session", "request"] },
  {
    name: "bare-joined",
    label: "bare Node, joined writes",
    eras: ["session", "request"],
    program: "bare",
    args: ["--join"]
  },
  // Only its start says anything.
  { name: "effect", label: "Effect and its Schema, imported", eras: [] },
  { name: "skein", label: "Skein", eras: ["session", "request"] },
  { name: "sdk-v1", label: "SDK v1 1.32.2", eras: ["session"] },
  { name: "sdk-v2", label: "SDK v2 2.4.0", eras: ["session", "request"] },
  { name: "effect-ai", label: "effect/ai 4.1, toolkit", eras: ["session", "request"] },
  { name: "effect-ai-raw", label: "effect/ai 4.1, unchecked", eras: ["session", "request"] }
]

/** Where a peer's packages come from. */
export type Form = "node_modules" | "bundled"

const here = fileURLToPath(new URL(".", import.meta.url))
const out = join(here, "..", "dist", "stdio")

const programOf = (peer: Peer): string => peer.program ?? peer.name

/** The file to run. */
export const fileOf = (peer: Peer, form: Form): string => join(out, form, `${programOf(peer)}.mjs`)

/**
 * Makes every peer ready in both forms. In `node_modules`, Skein is the built `dist` of its packages, as an installed one is.
 * One file is what `npm run bundle` makes of a program, for each peer alike.
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
}

const newest = (folder: string, ending: string): number =>
  existsSync(folder)
    ? Math.max(
      0,
      ...readdirSync(folder, { recursive: true, encoding: "utf8" })
        .filter((file) => file.endsWith(ending))
        .map((file) => statSync(join(folder, file)).mtimeMs)
    )
    : 0

/** Says what is wrong with the built `dist`, if anything: it is absent, or older than the sources. */
export const buildProblem = (
  module = "Stdio.js",
  role: "client" | "server" = "server"
): { readonly missing: boolean; readonly message: string } | undefined => {
  const packages = join(here, "..", "..", "packages")
  if (!existsSync(join(packages, role, "dist", module))) {
    return { missing: true, message: "Skein is not built, so it is left out: run `npm run build` first." }
  }
  const stale = ["protocol", "runtime", role].filter((room) =>
    newest(join(packages, room, "src"), ".ts") > newest(join(packages, room, "dist"), ".js")
  )
  return stale.length === 0
    ? undefined
    : { missing: false, message: `Older than its sources: ${stale.join(", ")}. Run \`npm run build\` first.` }
}
