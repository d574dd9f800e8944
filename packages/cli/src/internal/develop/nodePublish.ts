/**
 * `skein publish --dry-run`: the entry of a server in the MCP registry, of the definitions of its program, its `Config`
 * and its `package.json`. Nothing is sent.
 */
import { writeFile } from "node:fs/promises"
import { CommandFailed } from "../base/process.ts"
import { type DescribeLine, describeServer } from "./nodeDescribe.ts"
import { unusableFile } from "./nodeLoadModule.ts"
import { type Entry, type EntryOptions, makeEntry, problemOf, suggestedName } from "./registryEntry.ts"

/** A parsed command line of `publish`. */
export interface PublishLine extends DescribeLine, EntryOptions {
  /** The file to write; undefined: stdout. */
  readonly out: string | undefined
}

/** Makes the entry. Fails if the registry would refuse it, with each reason. */
export const publishedEntry = async (line: PublishLine): Promise<Entry & { readonly text: string }> => {
  const described = await describeServer(line)
  const made = makeEntry(described, line)
  if (made.entry["packages"] === undefined && made.entry["remotes"] === undefined) {
    throw unusableFile(
      "The registry needs a package or a remote server: package.json is private, or lacks name or version, and --remote is " +
        "missing"
    )
  }
  const name = String(made.entry["name"])
  if (!name.includes("/")) {
    const suggested = suggestedName(described.manifest, name)
    throw unusableFile(
      `The registry needs a name with a namespace that you own, and not ${name}: npm pkg set mcpName=${suggested}, or --name`
    )
  }
  const problem = problemOf(made.entry)
  if (problem !== undefined) throw unusableFile(`The registry would refuse the entry: ${problem}`)
  const text = `${JSON.stringify(made.entry, undefined, 2)}\n`
  if (line.out !== undefined) {
    await writeFile(line.out, text).catch((error: unknown) => {
      const reason = error instanceof Error ? error.message : String(error)
      throw new CommandFailed({ exitCode: 3, report: `The file ${line.out} cannot be written: ${reason}` })
    })
  }
  return { ...made, text }
}
