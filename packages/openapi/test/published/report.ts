/** `node --conditions=@skein/source packages/openapi/test/published/report.ts`: prints the numbers of the documents. */
import * as Effect from "effect/Effect"
import { documents } from "./documents.ts"
import { measure } from "./measure.ts"

console.log("| Document | Operations | Tools | Left out | ms | tools/list, KiB | Largest tool, KiB | Called |")
console.log("| --- | --- | --- | --- | --- | --- | --- | --- |")
const totals = { documents: 0, operations: 0, tools: 0, called: 0 }
const reasons = new Map<string, number>()
for (const document of documents) {
  const measured = await Effect.runPromise(measure(document))
  const { called, largestTool, leftOut, listChars, millis, operations, tools } = measured
  totals.documents++
  totals.operations += operations
  totals.tools += tools
  totals.called += called
  for (const reason of leftOut) reasons.set(reason, (reasons.get(reason) ?? 0) + 1)
  if (!document.hasRow) continue
  const kib = (chars: number): string => (chars / 1024).toFixed(chars < 100 * 1024 ? 1 : 0)
  console.log(
    `| ${document.name} | ${operations} | ${tools} | ${leftOut.length} | ${millis} | ${kib(listChars)} | ${
      kib(largestTool)
    } | ${called} |`
  )
}
console.log(totals, reasons)
