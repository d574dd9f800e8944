import { readFileSync } from "node:fs"
import { parseSync } from "rolldown/utils"
for (const p of process.argv.slice(2)) {
  const text = readFileSync(p, "utf8")
  let from = 0
  const code = parseSync(p, text).comments.map(({ end, start }) => {
    const b = text.slice(from, start)
    from = end
    return b
  })
  const lines = [...code, text.slice(from)].join("").split("\n").filter((l) =>
    l.trim() !== "" && !l.startsWith("import ")
  )
  console.log("=== " + p.replace("packages/server/src/", ""))
  console.log(lines.join("\n"))
}
