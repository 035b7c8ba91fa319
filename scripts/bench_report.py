class Report:
    def __init__(self, r):
        import bench_targets
        self.targets = bench_targets.evaluate(r); self.conclusions=[]
    def text(self):
        return "\n".join(f"{t['reached']!s:6} {t['figure']}: {t['measured']} ({t['wanted']}) {t['why']}" for t in self.targets)
    def write(self, d): pass
