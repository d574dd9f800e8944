/** Packs the packages of this repository, for projects that are installed from their tarballs. */
import { execFileSync } from "node:child_process"
import { existsSync, mkdirSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { root } from "./build.ts"

interface Manifest {
  readonly dependencies?: Readonly<Record<string, string>>
  readonly peerDependencies?: Readonly<Record<string, string>>
}

/** The packages of this repository that a package needs, with those that they need, and with itself. */
const closure = (name: string, found: Set<string> = new Set()): ReadonlySet<string> => {
  if (found.has(name)) return found
  found.add(name)
  const { dependencies, peerDependencies } = JSON.parse(
    readFileSync(join(root, "packages", name, "package.json"), "utf8")
  ) as Manifest
  for (const needed of Object.keys({ ...dependencies, ...peerDependencies })) {
    if (needed.startsWith("@skein/")) closure(needed.slice("@skein/".length), found)
  }
  return found
}

/** The packages that the projects of `create-skein` need, with those that they import. */
const names = new Set(
  ["skein", "server", "client", "auth", "tasks", "cli", "create-skein"].flatMap((name) => [...closure(name)])
)

/** The path of the npm that runs this script. */
const npm = process.env["npm_execpath"]

/** Runs npm in a folder, and returns its output. */
export const runNpm = (cwd: string, ...args: ReadonlyArray<string>): string => {
  const [file, first] = npm === undefined ? ["npm", []] : [process.execPath, [npm]]
  return execFileSync(file, [...first, ...args], { cwd, encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] })
}

/** Packs the packages into a new folder, and returns the paths of the tarballs. */
export const pack = (into: string): ReadonlyArray<string> => {
  mkdirSync(into)
  for (const name of names) {
    const folder = join(root, "packages", name)
    if (!existsSync(join(folder, "dist"))) throw new Error(`${folder} has no dist: run npm run build`)
    runNpm(folder, "pack", "--silent", "--pack-destination", into)
  }
  return readdirSync(into).filter((file) => file.endsWith(".tgz")).map((file) => join(into, file))
}

/** Creates a project with the packed `create-skein`, as `npm create skein` does, and does not install its packages. */
export const createProject = (
  cwd: string,
  tarballs: ReadonlyArray<string>,
  name: string,
  ...options: ReadonlyArray<string>
): string => {
  const creator = tarballs.find((path) => path.includes("create-skein-"))
  const command = ["create-skein", name, ...options, "--no-install", "--no-git"]
  runNpm(cwd, "exec", "--yes", "--prefer-offline", `--package=${creator}`, "--", ...command)
  return join(cwd, name)
}
