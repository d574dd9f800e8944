/**
 * Counts the lines of the compared servers: `npm run compare`. TypeScript is formatted by prettier with 120 columns.
 * Python is counted as it is, with the same limit. Blank lines, comments, and the sentence at the top do not count.
 */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { format } from "prettier"

/** The compared servers, in the order of the guide. */
export const servers = ["issues", "files", "api", "media", "research"] as const

/** The programs of each server. */
const programs = { skein: "skein.ts", sdk: "sdk.ts", fastmcp: "with_fastmcp.py" } as const

/** The lines of a program. */
export const linesOf = async (server: (typeof servers)[number], program: keyof typeof programs): Promise<number> => {
  const text = readFileSync(join(import.meta.dirname, server, programs[program]), "utf8")
  const formatted = program === "fastmcp" ? text : await format(text, { parser: "typescript", printWidth: 120 })
  return formatted.split("\n").filter((line) => !/^("""|\s*($|#|\/\/|\/?\*))/.test(line)).length
}

if (process.argv[1] === import.meta.filename) {
  for (const server of servers) {
    const counts = await Promise.all((["skein", "fastmcp", "sdk"] as const).map((program) => linesOf(server, program)))
    console.log(server.padEnd(10), ...counts.map((count) => String(count).padStart(4)))
  }
}
