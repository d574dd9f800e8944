/** The diagram of a `mermaid` code block, which GitHub draws too. The browser draws it, in the colours of the theme. */
import { useData } from "vitepress"
import { defineComponent, h, onMounted, ref, watch } from "vue"

let drawn = 0

export default defineComponent({
  props: { source: { type: String, required: true } },
  setup: (props) => {
    const { isDark } = useData()
    const svg = ref("")
    const draw = async (): Promise<void> => {
      const { default: mermaid } = await import("mermaid")
      mermaid.initialize({ startOnLoad: false, theme: isDark.value ? "dark" : "neutral" })
      svg.value = (await mermaid.render(`diagram-${++drawn}`, decodeURIComponent(props.source))).svg
    }
    onMounted(draw)
    watch(isDark, draw)
    return () =>
      svg.value === ""
        ? h("pre", { class: "diagram" }, decodeURIComponent(props.source))
        : h("div", { class: "diagram", innerHTML: svg.value })
  }
})
