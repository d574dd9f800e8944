/**
 * `npm run images`: builds the image of each template that has a Dockerfile, and runs it as the guides say.
 *
 * The projects are created from the packed packages, and Podman or Docker builds their images with the registry of
 * `registry.ts`. Each container runs without capabilities on a file system that it cannot write. It must pass its health
 * check, serve a call, close its streams at SIGTERM, log JSON, and keep its tasks in a volume. `--all` builds each
 * combination of template, style and package manager. Run `npm run build` before it.
 */
import { execFile, spawnSync } from "node:child_process"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { promisify } from "node:util"
import { packageManagers, styles } from "../../packages/create-skein/src/internal/choices.ts"
import { root } from "../build.ts"
import { freePort } from "../freePort.ts"
import { createProject, pack, runNpm } from "../tarballs.ts"
import { base, writeBase } from "./base.ts"
import { serveRegistry } from "./registry.ts"

const all = (["http", "tasks"] as const).flatMap((template) =>
  Object.keys(styles).flatMap((style) => Object.keys(packageManagers).map((manager) => ({ template, style, manager })))
)

/**
 * Both Dockerfiles, and each style. yarn takes twice as long as the other package managers, and fails if a registry lacks an
 * optional package of another platform.
 */
const some: typeof all = [
  { template: "http", style: "async", manager: "npm" },
  { template: "tasks", style: "effect", manager: "pnpm" }
]

const images = process.argv.includes("--all") ? all : some

const engine = ["podman", "docker"].find((name) => spawnSync(name, ["--version"]).status === 0)
if (engine === undefined) throw new Error("neither podman nor docker is in PATH")

// Podman builds as Docker does: images have their health checks, and no layers are left.
Object.assign(process.env, { BUILDAH_FORMAT: "docker", BUILDAH_LAYERS: "false" })

const execute = async (file: string, args: ReadonlyArray<string>): Promise<string> => {
  const { stderr, stdout } = await promisify(execFile)(file, args, { maxBuffer: 64 * 1024 * 1024 })
  // The logs of a container are on stderr.
  return args[0] === "logs" ? stdout + stderr : stdout.trim()
}

const run = (...args: ReadonlyArray<string>): Promise<string> => execute(engine, args)

/** Runs the command `skein` of this repository. */
const skein = (...args: ReadonlyArray<string>): Promise<string> =>
  execute(process.execPath, ["--conditions=@skein/source", join(root, "packages/cli/src/bin/skein.ts"), ...args])

const expect = (what: string, actual: unknown, expected: unknown): void => {
  const [found, wanted] = [JSON.stringify(actual), JSON.stringify(expected)]
  if (found !== wanted) throw new Error(`${what}: ${found} instead of ${wanted}`)
}

const restricted = ["--read-only", "--cap-drop=all", "--security-opt=no-new-privileges"]
// Docker makes no folder for temporary files in a container that is read-only.
if (engine === "podman") restricted.push("--read-only-tmpfs=false")

/** The name of the container, and the prefix of all other names. */
const name = `skein-images-${process.pid}`

/** Starts a container, and waits until its health check passes. Returns the URL of its server. */
const start = async (image: string, ...options: ReadonlyArray<string>): Promise<string> => {
  const port = await freePort()
  await run("run", "--detach", `--name=${name}`, `--publish=127.0.0.1:${port}:3000`, ...restricted, ...options, image)
  const [, ...health] = JSON.parse(await run("inspect", "--format={{json .Config.Healthcheck.Test}}", name))
  for (let attempt = 0;; attempt++) {
    try {
      await run("exec", name, ...health)
      return `http://127.0.0.1:${port}/mcp`
    } catch (error) {
      if (attempt === 300) throw new Error(`the health check fails: ${await run("logs", name)}`, { cause: error })
      await sleep(200)
    }
  }
}

const headers = { "content-type": "application/json", accept: "application/json, text/event-stream" }
const params = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "images", version: "1.0.0" } }

/** Stops the container while a session has an open stream. */
const stop = async (url: string): Promise<void> => {
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "initialize", params })
  const opened = await fetch(url, { method: "POST", headers, body })
  const session = opened.headers.get("mcp-session-id") ?? ""
  const stream = await fetch(url, { headers: { ...headers, "mcp-session-id": session } })
  expect("the stream of the session", stream.status, 200)
  const ended = stream.text().catch((cause) => {
    throw new Error("the connection broke before its stream ended", { cause })
  })
  await Promise.all([ended, run("stop", name)])
  expect("the exit code", await run("inspect", "--format={{.State.ExitCode}}", name), "143")
  const record = (await run("logs", name)).split("\n").find((line) => line.includes("Listening on")) ?? "{}"
  expect("the message of the log", JSON.parse(record).message, "Listening on http://localhost:3000/mcp")
  await run("rm", name)
}

/** The files of a container of the image, and its user. */
const look = `JSON.stringify([process.getuid(), fs.readdirSync("/app", { recursive: true }).toSorted()])`
const contents = [1000, ["dist", "dist/main.cjs", "dist/main.cjs.map"]]

const check = async (template: "http" | "tasks", image: string): Promise<void> => {
  expect("the image", JSON.parse(await run("run", "--rm", image, "node", "-p", look)), contents)
  if (template === "http") {
    const url = await start(image)
    const result = await skein("call", url, "convert", "{\"value\":212,\"from\":\"F\",\"to\":\"C\"}")
    expect("the result", JSON.parse(result), { value: 100, unit: "C" })
    return stop(url)
  }
  const volume = `--volume=${name}:/data`
  const first = await start(image, volume)
  const order = "{\"item\":\"sencha\",\"quantity\":2}"
  const handle = await skein("call", "--leave", "--timeout=5", first, "order", order).then(
    (result) => Promise.reject(new Error(`the task ended early: ${result}`)),
    ({ stdout }: { readonly stdout: string }) => stdout.trim()
  )
  await stop(first)
  // Another container continues the task.
  const second = await start(image, volume)
  const result = await skein("call", "--answer=address=1 Tea Street", "--resume", handle, second)
  expect("the result", result.replace(/\w+$/, "…"), "2 of sencha are on their way as parcel-…")
  await stop(second)
  await run("volume", "rm", name)
}

const temporary = mkdtempSync(join(tmpdir(), `${name}-`))
const made: Array<string> = []
try {
  const isThere = await run("image", "inspect", base).catch(() => run("pull", base)).then(() => true, () => false)
  if (!isThere) {
    writeBase(join(temporary, "base"))
    await run("build", `--tag=${base}`, join(temporary, "base"))
    made.push(base)
    console.log(`${base} cannot be pulled, and is made from this machine`)
  }
  const tarballs = pack(join(temporary, "tarballs"))
  const { server, url } = await serveRegistry(tarballs, runNpm(temporary, "config", "get", "registry").trim())
  for (const { manager, style, template } of images) {
    const image = `${name}-${template}-${style}-${manager}`
    const options = ["--template", template, "--style", style, "--package-manager", manager]
    const project = createProject(temporary, tarballs, image, ...options)
    writeFileSync(join(project, ".npmrc"), `registry=${url}\n`)
    const began = performance.now()
    await run("build", "--network=host", `--tag=${image}`, project)
    made.push(image)
    const built = performance.now()
    await check(template, image)
    const megabytes = Number(await run("image", "inspect", "--format={{.Size}}", image)) / 1e6
    const [building, checking] = [built - began, performance.now() - built].map((millis) => Math.round(millis / 1000))
    console.log(
      `${template}, ${style}, ${manager}: ${megabytes.toFixed(0)} MB, built in ${building} s, checked in ${checking} s`
    )
  }
  server.close()
} finally {
  await run("rm", "--force", name).catch(() => {})
  await run("volume", "rm", "--force", name).catch(() => {})
  for (const image of made.toReversed()) await run("rmi", "--force", image).catch(() => {})
  rmSync(temporary, { recursive: true, force: true })
}
