import { useData, withBase } from 'vitepress';
import { defineComponent, h, onMounted, ref, watch } from 'vue';

let drawn = 0;

/** Draws a Mermaid diagram in the browser. Pages without a diagram do not load the library. */
export const Diagram = defineComponent({
  props: { code: { type: String, required: true } },
  setup({ code }) {
    const { isDark } = useData();
    const source = new TextDecoder().decode(Uint8Array.from(atob(code), (letter) => letter.codePointAt(0) ?? 0));
    const svg = ref('');
    const draw = async (): Promise<void> => {
      // The library's own bundle, which scripts/site.ts copies: bundling it again takes most of the time of a build.
      const { default: mermaid }: typeof import('mermaid') = await import(
        /* @vite-ignore */ withBase('/mermaid/mermaid.esm.min.mjs')
      );
      mermaid.initialize({ startOnLoad: false, securityLevel: 'strict', theme: isDark.value ? 'dark' : 'default' });
      drawn += 1;
      svg.value = (await mermaid.render(`diagram-${drawn}`, source)).svg;
    };
    onMounted(draw);
    watch(isDark, draw);
    return () => (svg.value === '' ? h('pre', source) : h('div', { innerHTML: svg.value }));
  },
});
