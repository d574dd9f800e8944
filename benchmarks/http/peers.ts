/**
 * The programs under test, made ready to run as plain JavaScript that finds its packages in `node_modules`.
 */
import { build } from "esbuild"
import { fileURLToPath, pathToFileURL } from "node:url"
import { join } from "node:path"
import type { Era } from "../stdio/wire.ts"

export interface Peer {
  readonly name: string
  readonly label: string
  readonly eras: ReadonlyArray<Era>
  /** The program, where its name is not the peer's. */
  readonly program?: string
  readonly args?: ReadonlyArray<string>
  /** What makes its answers JSON where it would stream them, for answers that are one message: its faster way. */
  readonly json?: ReadonlyArray<string>
  /** Runs from Skein's sources instead of its built packages. */
  readonly source?: boolean
}

const both: ReadonlyArray<Era> = ["session", "request"]

/** All of them, the yardstick first. */
export const all: ReadonlyArray<Peer> = [
  { name: "bare", label: "bare node:http", eras: both },
  { name: "skein", label: "Skein", eras: both },
  {
    name: "sdk-v1",
    label: "SDK v1 1.32.2, sessions",
    eras: ["session"],
    program: "sdk-v1",
    args: ["--sessions"],
    json: ["--json"]
  },
  {
    name: "sdk-v1-stateless",
    label: "SDK v1 1.32.2, stateless",
    eras: ["session"],
    program: "sdk-v1",
    json: ["--json"]
  },
  { name: "sdk-v2", label: "SDK v2 2.4.0, one call", eras: both },
  {
    name: "sdk-v2-sessions",
    label: "SDK v2 2.4.0, sessions",
    eras: ["session"],
    program: "sdk-v2",
    args: ["--sessions"],
    json: ["--json"]
  },
  { name: "effect-ai", label: "effect/ai 4.1", eras: both }
]

const here = fileURLToPath(new URL(".", import.meta.url))
const out = join(here, "..", "dist", "http")

const programOf = (peer: Peer): string => peer.program ?? peer.name

/** The command that runs a peer. */
export const commandOf = (peer: Peer, args: ReadonlyArray<string>): ReadonlyArray<string> => [
  process.execPath,
  "--expose-gc",
  ...(peer.source === true ? ["--conditions=@skein/source"] : []),
  "--import",
  pathToFileURL(join(out, "control.mjs")).href,
  join(out, "peers", `${programOf(peer)}.mjs`),
  ...(peer.args ?? []),
  ...args
]

/** Makes every peer ready. Skein is the built `dist` of its packages, as an installed one is. */
export const prepare = (peers: ReadonlyArray<Peer>): Promise<unknown> =>
  build({
    entryPoints: [
      join(here, "control.ts"),
      ...new Set(peers.map((peer) => join(here, "peers", `${programOf(peer)}.ts`)))
    ],
    outbase: here,
    outdir: out,
    platform: "node",
    format: "esm",
    target: "node22",
    logLevel: "warning",
    outExtension: { ".js": ".mjs" }
  })
