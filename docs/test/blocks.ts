/**
 * Reads the code blocks of the guides and the regions of the programs. Run `npm run blocks` after you change a program: it
 * copies the regions into the guides.
 */
import { readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { installing, withNotice } from "../../scripts/onNpm.ts"

export const docs = join(import.meta.dirname, "..")

export const read = (path: string): string => readFileSync(join(docs, path), "utf8")

const pagesOf = (folder: string): ReadonlyArray<string> =>
  readdirSync(join(docs, folder)).filter((name) => name.endsWith(".md")).map((name) => join(folder, name))

/** The guides, with the pages of providers, of other libraries and of recipes. */
export const guides = [".", "providers", "coming-from", "recipes"].flatMap(pagesOf)

/** Reads a program of the comparison. Pages show these as a whole. */
export const readCompared = (path: string): string => readFileSync(join(docs, "..", path), "utf8").trimEnd()

/** The info strings of blocks that show a program of the comparison. */
export const compared = /^(?:ts|python) (examples\/comparison\/\w+\/\w+\.(?:ts|py))$/

/** The regions of a program by name: the lines between `// #region name` and `// #endregion`, without the indent of the first. */
export const regionsOf = (source: string): ReadonlyMap<string, string> =>
  new Map(
    Array.from(source.matchAll(/^( *)\/\/ #region (\w+)\n([^]*?)\n *\/\/ #endregion/gm)).map((
      [, indent = "", name = "", text = ""]
    ) => [name, text.replaceAll(`\n${indent}`, "\n").slice(indent.length)])
  )

/** A code block. `info` is its info string: the text after the three backticks. */
export interface Block {
  readonly guide: string
  readonly info: string
  readonly text: string
}

export const blocksOf = (guide: string): ReadonlyArray<Block> =>
  Array.from(
    read(guide).matchAll(/^```(\w+[^\n]*)\n([^]*?)\n?```$/gm),
    ([, info = "", text = ""]) => ({ guide, info, text })
  )

/** The text of the first block of a page whose info string begins with these words. */
export const textOf = (guide: string, info: string): string => {
  const block = blocksOf(guide).find((block) => block.info.startsWith(info))
  if (block === undefined) throw new Error(`${guide} has no block ${info}`)
  return block.text
}

if (import.meta.main) {
  for (const guide of guides) {
    const page = read(guide).replaceAll(
      /^```ts (programs\/[\w./]+)#(\w+)\n(?:[^]*?\n)??```$/gm,
      (_, file: string, region: string) => {
        const text = regionsOf(read(file)).get(region)
        if (text === undefined) throw new Error(`${guide}: ${file} has no region ${region}`)
        return `\`\`\`ts ${file}#${region}\n${text}\n\`\`\``
      }
    ).replaceAll(/^```(\w+ examples\/[^\n]+)\n[^]*?```$/gm, (_, info: string) => {
      const [, file = ""] = compared.exec(info) ?? []
      return `\`\`\`${info}\n${readCompared(file)}\n\`\`\``
    })
    writeFileSync(join(docs, guide), page)
  }
  for (const [page, link] of installing) {
    writeFileSync(join(docs, "..", page), withNotice(read(join("..", page)), link))
  }
}
