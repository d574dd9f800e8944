/**
 * `npm run recording`: runs the tour, and draws a part of its output as a terminal, in `docs/tour.svg`. The README and the
 * first page of the site show it. Its lines appear one after the other, and the last frame stays.
 */
import { execFile } from "node:child_process"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { promisify } from "node:util"

const root = join(import.meta.dirname, "..")

/** The file with the picture. */
export const path: string = join(root, "docs/tour.svg")

/** The output of `npm run tour`. */
export const runTour = async (): Promise<string> =>
  (await promisify(execFile)(process.execPath, ["--conditions=@skein/source", "examples/tour/tour.ts"], { cwd: root }))
    .stdout

/** The first words of the shown paragraphs, of the conversation in 2025-11-25 and of that in 2026-07-28. */
const shown = [
  ["2025-11-25:", "The server has", "A tool that reports", "A tool that fails", "A call that times out"],
  ["2026-07-28:", "The server has"]
]

/** The part of the output that the picture shows, as lines. */
export const excerpt = (output: string): ReadonlyArray<string> => {
  const at = output.indexOf("\n2026-07-28:")
  return ["$ npm run tour"].concat(
    [output.slice(0, at), output.slice(at)].flatMap((conversation, index) =>
      shown[index]!.flatMap((words) => {
        const paragraph = conversation.split("\n\n").map((text) => text.replace(/^\n+|\n+$/g, ""))
          .find((text) => text.trimStart().startsWith(words))
        if (paragraph === undefined) throw new Error(`the tour prints no paragraph that begins with "${words}"`)
        return ["", ...paragraph.split("\n")]
      })
    )
  )
}

const escapeXml = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;")

const span = (kind: string, text: string): string =>
  text === "" ? "" : `<tspan class="${kind}">${escapeXml(text)}</tspan>`

/** A line with colours: a message has an arrow and a method, a heading begins at the left, and other lines are comments. */
const colored = (line: string): string => {
  const [, arrow, method = "", rest = ""] = /^( {2}[→←] )(\S+)(.*)$/.exec(line) ?? []
  if (arrow !== undefined) {
    return span(arrow.includes("→") ? "out" : "in", arrow) + span("method", method) + span("data", rest)
  }
  return span(/^\S/.test(line) ? "heading" : line.startsWith("    ") ? "data" : "comment", line)
}

const lineHeight = 19

/** The picture of lines in a terminal. */
export const draw = (lines: ReadonlyArray<string>): string => {
  const height = lines.length * lineHeight + 56
  const rows = lines.map((line, index) =>
    line === "" ?
      "" :
      `<text x="18" y="${52 + index * lineHeight}" style="animation-delay:${(index * 0.12).toFixed(2)}s">` +
      `${colored(line)}</text>\n`
  )
  return `<svg xmlns="http://www.w3.org/2000/svg" width="970" height="${height}" viewBox="0 0 970 ${height}">
<style>
text { font: 14px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; white-space: pre; animation: show 0.1s both; }
@keyframes show { from { opacity: 0; } }
@media (prefers-reduced-motion) { text { animation: none; } }
.heading { fill: #ffffff; font-weight: bold; } .comment { fill: #9fb0c3; } .data { fill: #c7d1dc; }
.out { fill: #7cc0f7; font-weight: bold; } .in { fill: #7fd38b; font-weight: bold; } .method { fill: #f2c97d; }
</style>
<rect width="970" height="${height}" rx="10" fill="#16202c"/>
<circle cx="22" cy="20" r="6" fill="#ff5f57"/><circle cx="42" cy="20" r="6" fill="#febc2e"/><circle cx="62" cy="20" r="6" fill="#28c840"/>
${rows.join("")}</svg>
`
}

if (import.meta.main) writeFileSync(path, draw(excerpt(await runTour())))
