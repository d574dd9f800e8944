/**
 * `npm run release`: publishes all packages, with provenance. `--dry-run` prints what it would publish, and publishes nothing.
 *
 * Both pack each package, read the tarballs, and fail before anything is published if one is not fit to be: without
 * `dist`, with another version than the root, private on the registry, or without a dated section in the changelog. Run
 * `npm run build` before it. Provenance needs the identity of a job of GitHub Actions, so only `.github/workflows/publish.yml`
 * publishes.
 */
import { execFileSync } from "node:child_process"
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { parseArgs } from "node:util"

type Ranges = Readonly<Record<string, string>>

/** The members of a `package.json` that decide how a package is published. */
interface Manifest {
  readonly name: string
  readonly version: string
  readonly private?: boolean
  readonly repository?: { readonly url?: string }
  readonly publishConfig?: { readonly access?: string }
  readonly dependencies?: Ranges
  readonly peerDependencies?: Ranges
  readonly devDependencies?: Ranges
}

/** A packed package. */
interface Packed {
  readonly manifest: Manifest
  readonly tarball: string
  readonly files: ReadonlyArray<string>
  readonly bytes: number
  readonly unpackedBytes: number
}

const { values } = parseArgs({
  options: {
    "dry-run": { type: "boolean", default: false },
    files: { type: "boolean", default: false },
    root: { type: "string", default: join(import.meta.dirname, "..") }
  }
})
const { files: showFiles, root } = values

/** The path of the npm that runs this script. */
const npm = process.env["npm_execpath"]
const runNpm = (cwd: string, ...args: ReadonlyArray<string>): string => {
  const [file, first] = npm === undefined ? ["npm", []] : [process.execPath, [npm]]
  return execFileSync(file, [...first, ...args], { cwd, encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] })
}

const manifestOf = (folder: string): Manifest =>
  JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as Manifest

/** Returns the folders of the packages that are published, each after those that it needs. */
const inOrder = (): ReadonlyArray<string> => {
  const folders = new Map(
    readdirSync(join(root, "packages")).toSorted()
      .map((name) => join(root, "packages", name))
      .filter((folder) => existsSync(join(folder, "package.json")))
      .map((folder) => [manifestOf(folder).name, folder] as const)
      .filter(([, folder]) => manifestOf(folder).private !== true)
  )
  const ordered = new Set<string>()
  const add = (name: string): void => {
    const folder = folders.get(name)
    if (folder === undefined || ordered.has(folder)) return
    const { dependencies, peerDependencies } = manifestOf(folder)
    for (const needed of Object.keys({ ...dependencies, ...peerDependencies })) add(needed)
    ordered.add(folder)
  }
  for (const name of folders.keys()) add(name)
  return [...ordered]
}

const pack = (folder: string, into: string): Packed => {
  const [packed] = JSON.parse(runNpm(folder, "pack", "--json", "--pack-destination", into)) as ReadonlyArray<{
    readonly filename: string
    readonly files: ReadonlyArray<{ readonly path: string }>
    readonly size: number
    readonly unpackedSize: number
  }>
  const { filename, files, size, unpackedSize } = packed!
  const tarball = join(into, filename)
  const manifest = execFileSync("tar", ["-xOzf", tarball, "package/package.json"], { encoding: "utf8" })
  return {
    manifest: JSON.parse(manifest) as Manifest,
    tarball,
    files: files.map(({ path }) => path),
    bytes: size,
    unpackedBytes: unpackedSize
  }
}

/** The dist-tag: `latest`, or for `1.0.0-beta.1` the name of the prerelease. */
const tagOf = (version: string): string => /-([a-z]+)/i.exec(version)?.[1] ?? "latest"

/** Returns why a package must not be published. */
const problemsOf = (
  { files, manifest }: Packed,
  version: string,
  names: ReadonlySet<string>
): ReadonlyArray<string> => {
  const problems: Array<string> = []
  const { dependencies, devDependencies, name, peerDependencies } = manifest
  if (manifest.version !== version) problems.push(`has version ${manifest.version}, and the root has ${version}`)
  for (const [needed, range] of Object.entries({ ...dependencies, ...peerDependencies, ...devDependencies })) {
    if (names.has(needed) && range !== version) problems.push(`depends on ${needed} ${range} instead of ${version}`)
  }
  if (manifest.publishConfig?.access !== "public") {
    problems.push("is not public: publishConfig.access must be \"public\"")
  }
  if (manifest.repository?.url === undefined) problems.push("names no repository, which provenance requires")
  if (!files.some((file) => file.startsWith("dist/"))) problems.push("contains no dist: run npm run build")
  for (const file of ["LICENSE", "README.md"]) if (!files.includes(file)) problems.push(`contains no ${file}`)
  return problems.map((problem) => `${name} ${problem}`)
}

/** Returns why a release of this version must not be made. */
const problemsOfRelease = (version: string): ReadonlyArray<string> => {
  const problems: Array<string> = []
  const section = `## [${version}] - `
  const changelog = readFileSync(join(root, "CHANGELOG.md"), "utf8").split("\n")
  const isDated = changelog.some((line) =>
    line.startsWith(section) && /^\d{4}-\d\d-\d\d$/.test(line.slice(section.length))
  )
  if (!isDated) problems.push(`CHANGELOG.md has no dated section ${section}YYYY-MM-DD`)
  const { GITHUB_REF_NAME: ref, GITHUB_REF_TYPE: type } = process.env
  if (type === "tag" && ref !== `v${version}`) problems.push(`the tag is ${ref} instead of v${version}`)
  return problems
}

const kilobytes = (bytes: number): string => `${(bytes / 1000).toFixed(1)} kB`

/** Formats rows as columns. Columns that contain numbers only are aligned at the right. */
const table = (rows: ReadonlyArray<ReadonlyArray<string>>): string => {
  const widths = rows[0]!.map((_, at) => Math.max(...rows.map((row) => row[at]!.length)))
  const line = (row: ReadonlyArray<string>): string =>
    row.map((cell, at) => at < 5 ? cell.padEnd(widths[at]!) : cell.padStart(widths[at]!)).join("  ")
  return rows.map(line).join("\n")
}

const show = (packages: ReadonlyArray<Packed>): void => {
  const rows = packages.map(({ bytes, files, manifest: { name, publishConfig, version }, unpackedBytes }) => [
    name,
    version,
    tagOf(version),
    publishConfig?.access ?? "restricted",
    "yes",
    String(files.length),
    kilobytes(bytes),
    kilobytes(unpackedBytes)
  ])
  console.log(table([["package", "version", "tag", "access", "provenance", "files", "packed", "unpacked"], ...rows]))
  if (!showFiles) return
  for (const { files, manifest } of packages) console.log(`\n${manifest.name}\n  ${files.join("\n  ")}`)
}

/** Whether the registry has this version, so that a run that was interrupted can be repeated. */
const isPublished = ({ manifest: { name, version } }: Packed): boolean => {
  try {
    return runNpm(root, "view", `${name}@${version}`, "version", "--silent").trim() === version
  } catch {
    return false
  }
}

const publish = (packed: Packed): void => {
  const { name, version } = packed.manifest
  if (isPublished(packed)) return console.log(`${name}@${version} is published already`)
  runNpm(root, "publish", packed.tarball, "--provenance", "--access=public", `--tag=${tagOf(version)}`)
  console.log(`${name}@${version} is published`)
}

const temporary = mkdtempSync(join(tmpdir(), "skein-release-"))
try {
  const { version } = manifestOf(root)
  const packages = inOrder().map((folder) => pack(folder, temporary))
  const names = new Set(packages.map(({ manifest }) => manifest.name))
  show(packages)
  const problems = [
    ...problemsOfRelease(version),
    ...packages.flatMap((packed) => problemsOf(packed, version, names))
  ]
  if (!values["dry-run"] && process.env["ACTIONS_ID_TOKEN_REQUEST_URL"] === undefined) {
    problems.push("provenance needs a job of GitHub Actions with the permission id-token: write; use --dry-run here")
  }
  if (problems.length > 0) {
    for (const problem of problems) console.error(problem)
    console.error("Nothing was published.")
    process.exitCode = 1
  } else if (values["dry-run"]) {
    console.log(`\n${packages.length} packages can be published, in this order. Nothing was published.`)
  } else {
    for (const packed of packages) publish(packed)
  }
} finally {
  rmSync(temporary, { recursive: true, force: true })
}
