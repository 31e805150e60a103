// Formulas arrive as \( \) and \[ \] from pymdownx.arithmatex; KaTeX draws them on every page change.
document$.subscribe(({ body }) => {
  renderMathInElement(body, {
    delimiters: [
      { left: "\\[", right: "\\]", display: true },
      { left: "\\(", right: "\\)", display: false },
    ],
  });
});
